{{/* Fails if two servers would have one port. Of the values. */}}
{{- define "muster.checkPorts" -}}
{{- $tls := .metrics.tls.enabled -}}
{{- with .ports }}
{{- if ne 3 (list (int .http) (int .webhook) (int .statusServer) | uniq | len) }}
{{- fail "ports: http, webhook and statusServer must differ" }}
{{- end }}
{{- if and $tls (has (int .metrics) (list (int .http) (int .webhook) (int .statusServer))) }}
{{- fail "ports: metrics must differ from the others" }}
{{- end }}
{{- if has (int .statusServer) (list 443 8443) }}
{{- fail (printf "ports: statusServer is also a port of the Service, which has %d already" (int .statusServer)) }}
{{- end }}
{{- end }}
{{- end }}

{{/* The flags of `muster-controller run`, as a YAML list. Of (list $ ARGS), with those of controller/manifests. */}}
{{- define "muster.args" -}}
{{- $values := (index . 0).Values -}}
{{- $ports := $values.ports -}}
{{- $args := list -}}
{{- range index . 1 }}
{{- $args = append $args (replace ":9443" (printf ":%d" (int $ports.webhook)) .) }}
{{- end }}
{{- if ne 8081 (int $ports.http) }}
{{- $args = append $args (printf "--listen=:%d" (int $ports.http)) }}
{{- end }}
{{- with $values.watchNamespace }}
{{- $args = append $args (printf "--namespace=%s" .) }}
{{- end }}
{{- with $values.log.level }}
{{- $args = append $args (printf "--log-level=%s" .) }}
{{- end }}
{{- with $values.log.format }}
{{- $args = append $args (printf "--log-format=%s" .) }}
{{- end }}
{{- if $values.webhook.certManager.enabled }}
{{- $args = append $args "--webhook-cert-dir=/webhook-cert" }}
{{- end }}
{{- if $values.webhook.clientCA.enabled }}
{{- $args = append $args "--webhook-client-ca=/webhook-clients/ca.crt" }}
{{- end }}
{{- if $values.webhook.trustClients.enabled }}
{{- $args = append $args "--webhook-trust-clients" }}
{{- end }}
{{- if $values.statusServer.enabled }}
{{- $args = append $args (printf "--status-listen=:%d" (int $ports.statusServer)) }}
{{- end }}
{{- if $values.metrics.tls.enabled }}
{{- $args = append $args (printf "--metrics-listen=:%d" (int $ports.metrics)) }}
{{- end }}
{{- if $values.pytorchJobs.enabled }}
{{- $args = append $args "--serve-pytorchjobs" }}
{{- end }}
{{- $names := list "--agent-image" }}
{{- range $args }}
{{- $names = append $names (first (splitList "=" .)) }}
{{- end }}
{{- range $values.extraArgs }}
{{- $name := first (splitList "=" .) }}
{{- if has $name $names }}
{{- fail (printf "extraArgs: another value sets %s; docs/helm.md says which" $name) }}
{{- end }}
{{- end }}
{{- concat $args ($values.extraArgs | default list) | toYaml }}
{{- end }}
