{{/* "true" unless the values leave the object out. Of (list $ OBJECT). */}}
{{- define "muster.wanted" -}}
{{- $values := (index . 0).Values -}}
{{- $object := index . 1 -}}
{{- $wanted := true -}}
{{- if eq "ServiceAccount" $object.kind }}
{{- $wanted = $values.serviceAccount.create }}
{{- else if has $object.kind (list "Role" "RoleBinding" "ClusterRole" "ClusterRoleBinding") }}
{{- $wanted = $values.rbac.create }}
{{- else if eq "ClusterTrainingRuntime" $object.kind }}
{{- $wanted = (include "muster.runtime" (list (index . 0) $object.metadata.name) | fromYaml).enabled }}
{{- end }}
{{- if $wanted }}true{{ end }}
{{- end }}

{{/* Applies the values to an object that is not the Deployment. Of (list $ OBJECT). */}}
{{- define "muster.adjust" -}}
{{- $root := index . 0 -}}
{{- $values := $root.Values -}}
{{- $object := index . 1 -}}
{{- $kind := $object.kind -}}
{{- if eq "ServiceAccount" $kind }}
{{- $_ := set $object.metadata "name" (include "muster.serviceAccount" $root) }}
{{- include "muster.annotate" (list $object $values.serviceAccount.annotations) }}
{{- else if hasSuffix "RoleBinding" $kind }}
{{- range $object.subjects }}
{{- if eq "ServiceAccount" .kind }}
{{- $_ := set . "name" (include "muster.serviceAccount" $root) }}
{{- end }}
{{- end }}
{{- else if eq "ClusterRole" $kind }}
{{- if not $values.rbac.aggregateClusterRoles }}
{{- range $label := keys ($object.metadata.labels | default dict) }}
{{- if hasPrefix "rbac.authorization.k8s.io/aggregate-to-" $label }}
{{- $_ := unset $object.metadata.labels $label }}
{{- end }}
{{- end }}
{{- end }}
{{- else if eq "Service" $kind }}
{{- include "muster.annotate" (list $object $values.service.annotations) }}
{{- range $field := list "ipFamilyPolicy" "ipFamilies" }}
{{- with index $values.service $field }}
{{- $_ := set $object.spec $field . }}
{{- end }}
{{- end }}
{{- /* Pods post to the port that the controller listens on. */}}
{{- range $object.spec.ports }}
{{- if eq "status-server" .name }}
{{- $_ := set . "port" (int $values.ports.statusServer) }}
{{- else if and (eq "metrics" .name) $values.metrics.tls.enabled }}
{{- $_ := set . "targetPort" "metrics" }}
{{- end }}
{{- end }}
{{- else if eq "NetworkPolicy" $kind }}
{{- range $rule := $object.spec.ingress }}
{{- range $rule.ports }}
{{- $_ := set . "port" (include "muster.port" (list $root .port) | int) }}
{{- end }}
{{- end }}
{{- else if eq "PodDisruptionBudget" $kind }}
{{- with $values.podDisruptionBudget }}
{{- $_ := set $object.spec "minAvailable" .minAvailable }}
{{- if ne "" (toString .maxUnavailable) }}
{{- $_ := unset $object.spec "minAvailable" }}
{{- $_ := set $object.spec "maxUnavailable" .maxUnavailable }}
{{- end }}
{{- with .unhealthyPodEvictionPolicy }}
{{- $_ := set $object.spec "unhealthyPodEvictionPolicy" . }}
{{- end }}
{{- end }}
{{- else if has $kind (list "ServiceMonitor" "PrometheusRule") }}
{{- with $values.metrics.labels }}
{{- $_ := set $object.metadata "labels" (merge (dict) . ($object.metadata.labels | default dict)) }}
{{- end }}
{{- if and $values.metrics.tls.enabled (eq "ServiceMonitor" $kind) }}
{{- $change := $root.Files.Get "manifests/components/metrics-tls/service-monitor.yaml" | replace "kubeflow-system" $root.Release.Namespace | fromYaml }}
{{- $_ := set $object.spec "endpoints" $change.spec.endpoints }}
{{- end }}
{{- range $object.spec.endpoints }}
{{- $_ := mergeOverwrite . (deepCopy ($values.metrics.endpoint | default dict)) }}
{{- end }}
{{- else if hasSuffix "WebhookConfiguration" $kind }}
{{- include "muster.adjustWebhooks" . }}
{{- else if eq "CustomResourceDefinition" $kind }}
{{- include "muster.annotate" (list $object (dict "helm.sh/resource-policy" "keep")) }}
{{- else if eq "ClusterTrainingRuntime" $kind }}
{{- include "muster.adjustRuntime" . }}
{{- end }}
{{- end }}

{{- define "muster.adjustWebhooks" -}}
{{- $root := index . 0 -}}
{{- $webhook := $root.Values.webhook -}}
{{- $object := index . 1 -}}
{{- include "muster.annotate" (list $object $webhook.annotations) }}
{{- if $webhook.certManager.enabled }}
{{- $inject := dict "cert-manager.io/inject-ca-from" (printf "%s/kubeflow-trainer-webhook-cert" $root.Release.Namespace) }}
{{- include "muster.annotate" (list $object $inject) }}
{{- end }}
{{- if and $root.Values.pytorchJobs.enabled (eq "ValidatingWebhookConfiguration" $object.kind) }}
{{- $patch := $root.Files.Get "manifests/components/pytorchjob/webhook.yaml" | replace "kubeflow-system" $root.Release.Namespace | fromYamlArray }}
{{- $_ := set $object "webhooks" (append $object.webhooks (first $patch).value) }}
{{- end }}
{{- range $object.webhooks }}
{{- $_ := set . "failurePolicy" $webhook.failurePolicy }}
{{- $_ := set . "timeoutSeconds" $webhook.timeoutSeconds }}
{{- end }}
{{- end }}

{{- define "muster.adjustRuntime" -}}
{{- $root := index . 0 -}}
{{- $object := index . 1 -}}
{{- $image := (include "muster.runtime" (list $root $object.metadata.name) | fromYaml).image -}}
{{- range $job := $object.spec.template.spec.replicatedJobs }}
{{- $pod := $job.template.spec.template.spec }}
{{- range concat ($pod.initContainers | default list) $pod.containers }}
{{- if hasPrefix "muster-initializer:" .image }}
{{- $_ := set . "image" (include "muster.image" (list $root $root.Values.initializerImage)) }}
{{- $_ := set . "imagePullPolicy" $root.Values.initializerImage.pullPolicy }}
{{- else }}
{{- $_ := set . "image" (include "muster.runtimeImage" (list $root .image $image)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
