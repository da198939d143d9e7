{{/* The name of an image. Of (list $ IMAGE), with a value such as agentImage. */}}
{{- define "muster.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- with $root.Values.registry }}{{ trimSuffix "/" . }}/{{ end }}{{ $image.repository }}:{{ $image.tag | default $root.Chart.AppVersion }}
{{- end }}

{{/* The objects of a file of controller/manifests, in the release's namespace. Of (list $ PATH LABELS). */}}
{{- define "muster.objects" -}}
{{- $root := index . 0 -}}
{{- $labels := index . 2 -}}
{{- $text := $root.Files.Get (index . 1) | replace "kubeflow-system" $root.Release.Namespace -}}
{{- $text = $text | replace (printf "image: muster-initializer:%s\n" $root.Chart.AppVersion) (printf "image: %s\n" (include "muster.image" (list $root $root.Values.initializerImage))) -}}
{{- range splitList "\n---\n" $text }}
{{- $object := fromYaml . }}
{{- if $labels }}
{{- $_ := set $object.metadata "labels" (merge (dict) $labels ($object.metadata.labels | default dict)) }}
{{- end }}
{{- if and $root.Values.webhook.certManager.enabled (hasSuffix "WebhookConfiguration" $object.kind) }}
{{- $inject := dict "cert-manager.io/inject-ca-from" (printf "%s/kubeflow-trainer-webhook-cert" $root.Release.Namespace) }}
{{- $_ := set $object.metadata "annotations" (merge $inject ($object.metadata.annotations | default dict)) }}
{{- end }}
{{- if and $root.Values.pytorchJobs.enabled (eq "ValidatingWebhookConfiguration" $object.kind) }}
{{- $patch := $root.Files.Get "manifests/components/pytorchjob/webhook.yaml" | replace "kubeflow-system" $root.Release.Namespace | fromYamlArray }}
{{- $_ := set $object "webhooks" (append $object.webhooks (first $patch).value) }}
{{- end }}
{{- if eq "CustomResourceDefinition" $object.kind }}
{{- $_ := set $object.metadata "annotations" (dict "helm.sh/resource-policy" "keep") }}
{{- end }}
---
{{ toYaml $object }}
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
