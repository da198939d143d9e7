{{/* The name of an image of Muster. Of (list $ IMAGE), with a value such as agentImage. */}}
{{- define "muster.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- $tag := $image.tag | default (ternary "" $root.Chart.AppVersion (not (empty $image.digest))) -}}
{{- include "muster.reference" (list ($image.registry | default $root.Values.registry) $image.repository $tag $image.digest) }}
{{- end }}

{{/* Of (list REGISTRY REPOSITORY TAG DIGEST); each but REPOSITORY may be empty. */}}
{{- define "muster.reference" -}}
{{- with index . 0 }}{{ trimSuffix "/" . }}/{{ end }}{{ index . 1 }}{{ with index . 2 }}:{{ . }}{{ end }}{{ with index . 3 }}@{{ . }}{{ end }}
{{- end }}

{{/* An image of a built-in runtime, but for what the values replace. A repository with a registry replaces both.
Of (list $ NAME IMAGE), with a value such as runtimes.plain.image. */}}
{{- define "muster.runtimeImage" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $image := index . 2 -}}
{{- $registry := regexFind "^[^/]*[.:][^/]*/" $name -}}
{{- $tagged := trimPrefix $registry $name -}}
{{- $tag := regexFind ":[^:/]+$" $tagged -}}
{{- $repository := $image.repository | default (trimSuffix $tag $tagged) -}}
{{- $registry = $image.registry | default (ternary "" ($root.Values.runtimes.registry | default $registry) (regexMatch "^[^/]*[.:][^/]*/" $repository)) -}}
{{- $kept := ternary "" (trimPrefix ":" $tag) (not (empty $image.digest)) -}}
{{- include "muster.reference" (list $registry $repository ($image.tag | default $kept) $image.digest) }}
{{- end }}

{{/* The value of a built-in runtime, as YAML. Of (list $ NAME). */}}
{{- define "muster.runtime" -}}
{{- $values := (index . 0).Values.runtimes -}}
{{- $tune := $values.torchtuneDistributed -}}
{{- $runtimes := dict "plain" $values.plain "torch-distributed" $values.torchDistributed "deepspeed-distributed" $values.deepspeedDistributed "mlx-distributed" $values.mlxDistributed "jax-distributed" $values.jaxDistributed "xgboost-distributed" $values.xgboostDistributed -}}
{{- range $name, $model := dict "torchtune-llama3.2-1b" $tune.llama3_2_1B "torchtune-llama3.2-3b" $tune.llama3_2_3B "torchtune-qwen2.5-1.5b" $tune.qwen2_5_1_5B }}
{{- $_ := set $runtimes $name (dict "enabled" $model.enabled "image" $tune.image) }}
{{- end }}
{{- get $runtimes (index . 1) | required (printf "no value turns the runtime %s on or off" (index . 1)) | toYaml }}
{{- end }}
