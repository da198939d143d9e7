{{/* The objects of a file of controller/manifests, in the release's namespace. Of (list $ PATH LABELS). */}}
{{- define "muster.objects" -}}
{{- $root := index . 0 -}}
{{- $labels := index . 2 -}}
{{- range splitList "\n---\n" ($root.Files.Get (index . 1) | replace "kubeflow-system" $root.Release.Namespace) }}
{{- $object := fromYaml . }}
{{- if $labels }}
{{- $_ := set $object.metadata "labels" (merge (dict) $labels ($object.metadata.labels | default dict)) }}
{{- end }}
{{- include "muster.object" (list $root $object) }}
{{- end }}
{{- end }}

{{/* The objects of a folder of controller/manifests, as its kustomization.yaml says, but for some files. Of (list $ FOLDER EXCEPT). */}}
{{- define "muster.folder" -}}
{{- $root := index . 0 -}}
{{- $folder := index . 1 -}}
{{- $except := index . 2 -}}
{{- $kustomization := $root.Files.Get (printf "%s/kustomization.yaml" $folder) | fromYaml -}}
{{- $labels := dict -}}
{{- range $kustomization.labels }}
{{- $labels = merge $labels .pairs }}
{{- end }}
{{- range $kustomization.resources }}
{{- if and (hasSuffix ".yaml" .) (not (has . $except)) }}
{{- include "muster.objects" (list $root (printf "%s/%s" $folder .) $labels) }}
{{- end }}
{{- end }}
{{- end }}

{{/* One object, with the values applied, unless they leave it out. Of (list $ OBJECT); changes OBJECT. */}}
{{- define "muster.object" -}}
{{- $root := index . 0 -}}
{{- $object := index . 1 -}}
{{- if include "muster.wanted" . }}
{{- include "muster.adjust" . }}
{{- with $root.Values.commonLabels }}
{{- $_ := set $object.metadata "labels" (merge (dict) ($object.metadata.labels | default dict) .) }}
{{- end }}
---
{{ toYaml $object }}
{{ end }}
{{- end }}

{{/* Adds annotations to an object, or to the template of its pods. Of (list OBJECT ANNOTATIONS). */}}
{{- define "muster.annotate" -}}
{{- $metadata := (index . 0).metadata -}}
{{- with index . 1 }}
{{- $_ := set $metadata "annotations" (merge (dict) . ($metadata.annotations | default dict)) }}
{{- end }}
{{- end }}

{{/* The port that the values have in place of one of controller/manifests. Of (list $ PORT). */}}
{{- define "muster.port" -}}
{{- $ports := (index . 0).Values.ports -}}
{{- $port := index . 1 | int -}}
{{- get (dict "8081" $ports.http "9443" $ports.webhook "10443" $ports.statusServer "8443" $ports.metrics) (toString $port) | default $port | int }}
{{- end }}

{{- define "muster.serviceAccount" -}}
{{ .Values.serviceAccount.name | default "kubeflow-trainer-controller-manager" }}
{{- end }}
