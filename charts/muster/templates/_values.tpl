{{/* Fails if a part of values.yaml is missing, as after `helm upgrade --reuse-values` from a chart that had no such part. Of $. */}}
{{- define "muster.checkValues" -}}
{{- range splitList " " (join " " (list
  "agentImage image initializerImage log metrics metrics.tls networkPolicy podDisruptionBudget ports pytorchJobs rbac"
  "runtimes runtimes.plain runtimes.plain.image runtimes.torchDistributed runtimes.torchDistributed.image"
  "runtimes.deepspeedDistributed runtimes.deepspeedDistributed.image runtimes.mlxDistributed runtimes.mlxDistributed.image"
  "runtimes.jaxDistributed runtimes.jaxDistributed.image runtimes.xgboostDistributed runtimes.xgboostDistributed.image"
  "runtimes.torchtuneDistributed runtimes.torchtuneDistributed.image runtimes.torchtuneDistributed.llama3_2_1B"
  "runtimes.torchtuneDistributed.llama3_2_3B runtimes.torchtuneDistributed.qwen2_5_1_5B service serviceAccount statusServer"
  "webhook webhook.certManager webhook.clientCA webhook.trustClients")) }}
{{- $part := $.Values }}
{{- range splitList "." . }}
{{- $part = get ($part | default dict) . | default dict }}
{{- end }}
{{- if not $part }}
{{- fail (printf "the values lack `%s`, which this chart has: upgrade with --reset-then-reuse-values (Helm 3.14 or later) in place of --reuse-values, which keeps the defaults of the chart before" .) }}
{{- end }}
{{- end }}
{{- end }}
