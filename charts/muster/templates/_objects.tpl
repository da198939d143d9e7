{{/* The objects of a file of controller/manifests, in the release's namespace. Of (list $ PATH). */}}
{{- define "muster.objects" -}}
{{- $root := index . 0 -}}
{{- $text := $root.Files.Get (index . 1) | replace "kubeflow-system" $root.Release.Namespace -}}
{{- range splitList "\n---\n" $text }}
{{- $object := fromYaml . }}
{{- if and $root.Values.webhook.certManager.enabled (hasSuffix "WebhookConfiguration" $object.kind) }}
{{- $inject := dict "cert-manager.io/inject-ca-from" (printf "%s/kubeflow-trainer-webhook-cert" $root.Release.Namespace) }}
{{- $_ := set $object.metadata "annotations" (merge $inject ($object.metadata.annotations | default dict)) }}
{{- end }}
---
{{ toYaml $object }}
{{- end }}
{{- end }}
