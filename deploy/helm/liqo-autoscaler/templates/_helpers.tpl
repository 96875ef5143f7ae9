{{- define "la.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* The release's name with the chart's name, unless it already contains the chart's name. */}}
{{- define "la.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "la.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "la.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels: (list $ "component"); "" for an object that belongs to no component. */}}
{{- define "la.labels" -}}
{{- $root := index . 0 -}}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
app.kubernetes.io/version: {{ $root.Values.image.tag | default $root.Chart.AppVersion | quote }}
{{ include "la.selector" . }}
{{- end -}}

{{- define "la.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "la.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
{{- with index . 1 }}
app.kubernetes.io/component: {{ include "la.component" (list $root .) }}
{{- end }}
{{- end -}}

{{/* The component of the pod in which a program runs: with temporal.bundled one pod has all programs. */}}
{{- define "la.component" -}}
{{- $component := index . 1 -}}
{{- if and (index . 0).Values.temporal.bundled.enabled (has $component (list "worker" "grpcserver")) -}}
{{- $component = "bundled" -}}
{{- end -}}
{{- $component -}}
{{- end -}}

{{/* The number of workers: null in the values means two. */}}
{{- define "la.workers" -}}
{{- if kindIs "invalid" .Values.worker.replicaCount }}2{{ else }}{{ .Values.worker.replicaCount }}{{ end -}}
{{- end -}}

{{- define "la.image" -}}
{{- $i := .Values.image -}}
{{- if $i.digest -}}
{{ $i.repository }}@{{ $i.digest }}
{{- else -}}
{{ $i.repository }}:{{ $i.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* The name of a component's ServiceAccount: (list $ "component"). */}}
{{- define "la.serviceAccount" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- if and $root.Values.temporal.bundled.enabled (eq $component "grpcserver") -}}
{{- $component = "worker" -}}{{/* a pod has one account */}}
{{- end -}}
{{- $account := (index $root.Values $component).serviceAccount -}}
{{- if $account.create -}}
{{- $account.name | default (printf "%s-%s" (include "la.fullname" $root) $component) -}}
{{- else -}}
{{- $account.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* The host name of the gRPC server for CA. CA checks the server's certificate against exactly this name. */}}
{{- define "la.grpcHost" -}}
{{ include "la.fullname" . }}.{{ .Release.Namespace }}.svc
{{- end -}}

{{- define "la.caNamespace" -}}
{{ .Values.clusterAutoscaler.namespace | default .Release.Namespace }}
{{- end -}}

{{- define "la.tlsSecret" -}}
{{- if not .Values.tls.plaintext -}}
{{ .Values.tls.existingSecret | default (printf "%s-grpcserver-tls" (include "la.fullname" .)) }}
{{- end -}}
{{- end -}}

{{- define "la.discoverySecret" -}}
{{ .Values.discovery.tls.existingSecret | default (printf "%s-discovery-tls" (include "la.fullname" .)) }}
{{- end -}}

{{- define "la.issuerRef" -}}
{{- $ref := .Values.tls.certManager.issuerRef -}}
{{- if $ref.name -}}
{{ toYaml $ref }}
{{- else -}}
name: {{ include "la.fullname" . }}-ca
kind: Issuer
{{- end -}}
{{- end -}}

{{/* The suffix of a container's port names. In the worker's pod the gRPC server needs other names and ports. */}}
{{- define "la.portSuffix" -}}
{{- if and (index . 0).Values.temporal.bundled.enabled (eq (index . 1) "grpcserver") }}-server{{ end -}}
{{- end -}}

{{/* The flags of every command: (list $ "component"). */}}
{{- define "la.commonArgs" -}}
{{- $other := include "la.portSuffix" . -}}
{{- with index . 0 -}}
- --log-level={{ .Values.log.level }}
- --log-format={{ .Values.log.format }}
- --health-listen=:{{ ternary 8082 8081 (ne $other "") }}
- --metrics-listen={{ if .Values.metrics.enabled }}:{{ ternary 9091 9090 (ne $other "") }}{{ end }}
{{- end -}}
{{- end -}}

{{/* The ports of every container: (list $ "component"). */}}
{{- define "la.ports" -}}
{{- $other := include "la.portSuffix" . -}}
- {name: health{{ $other }}, containerPort: {{ ternary 8082 8081 (ne $other "") }}, protocol: TCP}
{{- if (index . 0).Values.metrics.enabled }}
- {name: metrics{{ $other }}, containerPort: {{ ternary 9091 9090 (ne $other "") }}, protocol: TCP}
{{- end }}
{{- end -}}

{{/* The probes: alive while the process's loop runs, ready while the process can work: (list $ "component"). */}}
{{- define "la.probes" -}}
{{- $port := printf "health%s" (include "la.portSuffix" .) -}}
livenessProbe:
  httpGet: {path: /healthz, port: {{ $port }}}
  periodSeconds: 10
  timeoutSeconds: 2
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: {{ $port }}}
  periodSeconds: 5
  timeoutSeconds: 2
{{- end -}}

{{/* The allowed names in client certificates. The default with cert-manager is the name in CA's certificate. */}}
{{- define "la.allowedNames" -}}
{{- $names := .Values.tls.allowedNames -}}
{{- if and .Values.tls.certManager.enabled (not $names) -}}
{{- $names = list "cluster-autoscaler" -}}
{{- end -}}
{{- join "," $names -}}
{{- end -}}

{{- define "la.temporalAddress" -}}
{{- if .Values.temporal.bundled.enabled }}127.0.0.1:7233{{ else }}{{ .Values.temporal.address }}{{ end -}}
{{- end -}}

{{- define "la.temporalArgs" -}}
- --temporal-address={{ include "la.temporalAddress" . }}
- --temporal-namespace={{ .Values.temporal.namespace }}
{{- with .Values.temporal.taskQueue }}
- --task-queue={{ . }}
{{- end }}
{{- with .Values.temporal.tls }}
{{- if .enabled }}
- --temporal-tls
{{- end }}
{{- if .ca.secretName }}
- --temporal-tls-ca=/etc/liqo-autoscaler/temporal-ca/{{ .ca.key }}
{{- end }}
{{- with .clientCertificate }}
{{- if .secretName }}
- --temporal-tls-cert=/etc/liqo-autoscaler/temporal-client/{{ .certKey }}
- --temporal-tls-key=/etc/liqo-autoscaler/temporal-client/{{ .keyKey }}
{{- end }}
{{- end }}
{{- with .serverName }}
- --temporal-tls-server-name={{ . }}
{{- end }}
{{- end }}
{{- with .Values.temporal.apiKey }}
{{- if .secretName }}
- --temporal-api-key-file=/etc/liqo-autoscaler/temporal-key/{{ .key }}
{{- end }}
{{- end }}
{{- with .Values.temporal.codec }}
{{- if .secretName }}
- --temporal-codec-key-file=/etc/liqo-autoscaler/temporal-codec/{{ .key }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The Secrets whose files la.temporalArgs names. Whole folders are mounted, because a single mounted file never changes. */}}
{{- define "la.temporalMounts" -}}
{{- range $name, $secret := include "la.temporalSecrets" . | fromYaml }}
- {name: {{ $name }}, mountPath: /etc/liqo-autoscaler/{{ $name }}, readOnly: true}
{{- end }}
{{- end -}}

{{- define "la.temporalVolumes" -}}
{{- range $name, $secret := include "la.temporalSecrets" . | fromYaml }}
- name: {{ $name }}
  secret:
    secretName: {{ $secret.name }}
    items:
    {{- range $secret.keys }}
    - {key: {{ . }}, path: {{ . }}}
    {{- end }}
{{- end }}
{{- end -}}

{{- define "la.temporalSecrets" -}}
{{- with .Values.temporal.tls.ca }}{{ if .secretName }}
temporal-ca: {name: {{ .secretName }}, keys: [{{ .key }}]}
{{- end }}{{ end }}
{{- with .Values.temporal.tls.clientCertificate }}{{ if .secretName }}
temporal-client: {name: {{ .secretName }}, keys: [{{ .certKey }}, {{ .keyKey }}]}
{{- end }}{{ end }}
{{- with .Values.temporal.apiKey }}{{ if .secretName }}
temporal-key: {name: {{ .secretName }}, keys: [{{ .key }}]}
{{- end }}{{ end }}
{{- with .Values.temporal.codec }}{{ if .secretName }}
temporal-codec: {name: {{ .secretName }}, keys: [{{ .key }}]}
{{- end }}{{ end }}
{{- end -}}

{{/* A volume with the token of the pod's account, for a pod that mounts no token itself, so that the bundled Temporal gets none. */}}
{{- define "la.tokenMount" -}}
{{- if .Values.temporal.bundled.enabled -}}
- {name: token, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}
{{- end -}}
{{- end -}}

{{/* The common parts of all pods, without their containers: (list $ "component"), or (list $ "component" "account"). */}}
{{- define "la.podSpec" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $v := index $root.Values $component -}}
serviceAccountName: {{ if gt (len .) 2 }}{{ index . 2 }}{{ else }}{{ include "la.serviceAccount" . }}{{ end }}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- $security := $root.Values.podSecurityContext }}
{{- if $root.Values.openshift }}{{- $security = omit $security "runAsUser" "runAsGroup" "fsGroup" }}{{- end }}
securityContext:
  {{- toYaml $security | nindent 2 }}
{{- with $v.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $v.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with include "la.affinity" (list $root $v.affinity) }}
affinity:
  {{- . | nindent 2 }}
{{- end }}
{{- if kindIs "invalid" $v.topologySpreadConstraints }}
topologySpreadConstraints:
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- include "la.selector" (list $root $component) | nindent 6 }}
{{- else }}
{{- with $v.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The affinity of a pod: (list $ affinity). Unless the value keepOffVirtualNodes is false, each term of the required node
     affinity also excludes Liqo's virtual nodes, because Kubernetes accepts a node that matches one term. */}}
{{- define "la.affinity" -}}
{{- $affinity := deepCopy (index . 1) -}}
{{- if (index . 0).Values.keepOffVirtualNodes -}}
{{- $node := $affinity.nodeAffinity | default dict -}}
{{- $required := $node.requiredDuringSchedulingIgnoredDuringExecution | default dict -}}
{{- $off := dict "key" "liqo.io/type" "operator" "NotIn" "values" (list "virtual-node") -}}
{{- $terms := list -}}
{{- range $required.nodeSelectorTerms | default (list dict) -}}
{{- $terms = append $terms (merge (dict "matchExpressions" (append (.matchExpressions | default list) $off)) .) -}}
{{- end -}}
{{- $node = merge (dict "requiredDuringSchedulingIgnoredDuringExecution" (dict "nodeSelectorTerms" $terms)) $node -}}
{{- $affinity = merge (dict "nodeAffinity" $node) $affinity -}}
{{- end -}}
{{- if $affinity }}{{ toYaml $affinity }}{{ end -}}
{{- end -}}

{{/* The egress rules of all pods of the release. */}}
{{- define "la.egress" -}}
{{- $e := .Values.networkPolicy.egress -}}
- ports: # DNS
  - {port: 53, protocol: UDP}
  - {port: 53, protocol: TCP}
  {{- if .Values.openshift }}
  - {port: 5353, protocol: UDP} # OpenShift's DNS pods, behind their Service
  - {port: 5353, protocol: TCP}
  {{- end }}
- ports: # API servers, of this cluster and of the providers
  {{- range $e.apiServerPorts }}
  - {port: {{ int . }}, protocol: TCP}
  {{- end }}
  {{- with $e.apiServers }}
  to:
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- if not .Values.temporal.bundled.enabled }}
- ports: # Temporal
  - {port: {{ include "la.portOf" (list .Values.temporal.address 7233) }}, protocol: TCP}
{{- end }}
{{- if .Values.offerServer.enabled }}
{{- with .Values.offerServer.url }}
- ports: # the discovery server
  - {port: {{ include "la.portOf" (list . 443) }}, protocol: TCP}
{{- end }}
{{- end }}
{{- if .Values.discovery.enabled }}
- ports: # this release's discovery server
  - {port: https, protocol: TCP}
  to:
  - podSelector:
      matchLabels:
        {{- include "la.selector" (list . "discovery") | nindent 8 }}
{{- if eq .Values.discovery.store "postgres" }}
- ports: # PostgreSQL
  - {port: 5432, protocol: TCP}
{{- end }}
{{- end }}
{{- with .Values.worker.probeURL }}
- ports: # worker.probeURL
  - {port: {{ include "la.portOf" (list . (ternary 80 443 (hasPrefix "http:" .))) }}, protocol: TCP}
{{- end }}
{{- with $e.extra }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The port of host:port or of a URL: (list address default). */}}
{{- define "la.portOf" -}}
{{- $host := regexReplaceAll "^[a-z]+://" (index . 0) "" | splitList "/" | first -}}
{{- $port := regexFind ":[0-9]+$" $host | trimPrefix ":" -}}
{{- $port | default (index . 1) -}}
{{- end -}}

{{/* The common parts of all containers: (list $ "component"), or (list $ "component" "image"). */}}
{{- define "la.container" -}}
{{- $root := index . 0 -}}
{{- $v := index $root.Values (index . 1) -}}
image: {{ if gt (len .) 2 }}{{ index . 2 | quote }}{{ else }}{{ include "la.image" $root | quote }}{{ end }}
imagePullPolicy: {{ $root.Values.image.pullPolicy }}
securityContext:
  {{- toYaml $root.Values.securityContext | nindent 2 }}
resources:
  {{- toYaml $v.resources | nindent 2 }}
{{- with $v.extraEnv }}
env:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Checks of the values that the schema cannot express. */}}
{{- define "la.check" -}}
{{- include "la.checkTemporal" . -}}
{{- $tls := .Values.tls -}}
{{- $ways := 0 -}}
{{- range list $tls.existingSecret $tls.certManager.enabled $tls.plaintext }}{{ if . }}{{ $ways = add1 $ways }}{{ end }}{{ end -}}
{{- if ne (int $ways) 1 -}}
{{- fail "tls: set exactly one of existingSecret, certManager.enabled and plaintext" -}}
{{- end -}}
{{- range $i, $group := .Values.nodeGroups -}}
{{- range $key := list "max" "shape" -}}
{{- if not (or (hasKey $group $key) (hasKey $.Values.nodeGroupDefaults $key)) -}}
{{- fail (printf "nodeGroups[%d].%s is missing, and nodeGroupDefaults has none" $i $key) -}}
{{- end -}}
{{- end -}}
{{- $both := dict -}}{{/* merge is not used: it changes its arguments, and treats 0 as missing */}}
{{- range $key := list "min" "max" }}{{ $_ := set $both $key (int (ternary (get $group $key) (get $.Values.nodeGroupDefaults $key) (hasKey $group $key))) }}{{ end -}}
{{- if gt $both.min $both.max -}}
{{- fail (printf "nodeGroups[%d].min is %d, above max, which is %d" $i $both.min $both.max) -}}
{{- end -}}
{{- end -}}
{{- if and $tls.plaintext $tls.allowedNames -}}
{{- fail "tls.allowedNames needs TLS" -}}
{{- end -}}
{{- if and $tls.certManager.enabled $tls.allowedNames (not (has "cluster-autoscaler" $tls.allowedNames)) -}}
{{- fail "tls.allowedNames leaves out cluster-autoscaler, the name of the certificate that cert-manager makes for CA" -}}
{{- end -}}
{{- if and .Values.metrics.serviceMonitor.enabled (not .Values.metrics.enabled) -}}
{{- fail "metrics.serviceMonitor needs metrics.enabled" -}}
{{- end -}}
{{- if not (or .Values.offers .Values.offerSecrets.enabled .Values.offerServer.enabled) -}}
{{- fail "no source of offers: give offers, offerSecrets.enabled or offerServer.enabled, or several of them" -}}
{{- end -}}
{{- if .Values.offerServer.enabled -}}
{{- if not (or .Values.offerServer.token.secretName .Values.offerServer.certificate.secretName) -}}
{{- fail "offerServer.token.secretName: name the Secret with the worker's token, or offerServer.certificate.secretName that with its certificate" -}}
{{- end -}}
{{- if not (or .Values.offerServer.url .Values.discovery.enabled) -}}
{{- fail "offerServer.url: give the discovery server's address, or enable this chart's own with discovery.enabled" -}}
{{- end -}}
{{- end -}}
{{- if and (eq (include "la.policies" .) "true") (semverCompare "<1.30.0-0" .Capabilities.KubeVersion.Version) -}}
{{- fail (printf "rbac.policies: Kubernetes %s has no ValidatingAdmissionPolicies, without which the worker's account equals cluster-admin: use 1.30 or later, or accept that by rbac.policies: false" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- if .Values.discovery.enabled -}}
{{- if not .Values.discovery.writers.secretName -}}
{{- fail "discovery.writers.secretName: name the Secret with the writers file" -}}
{{- end -}}
{{- if not (or .Values.discovery.tls.existingSecret .Values.discovery.tls.certManager) -}}
{{- fail "discovery.tls: give existingSecret or certManager; the discovery server speaks HTTPS only" -}}
{{- end -}}
{{- if and .Values.discovery.tls.certManager (not $tls.certManager.enabled) -}}
{{- fail "discovery.tls.certManager needs tls.certManager.enabled" -}}
{{- end -}}
{{- if and (eq .Values.discovery.store "sqlite") (gt (int .Values.discovery.replicaCount) 1) -}}
{{- fail "discovery.replicaCount: a SQLite file has one server; more need discovery.store postgres" -}}
{{- end -}}
{{- if and (eq .Values.discovery.store "postgres") (not .Values.discovery.postgres.secretName) -}}
{{- fail "discovery.postgres.secretName: name the Secret with PostgreSQL's connection string" -}}
{{- end -}}
{{- end -}}
{{- if and $tls.certManager.enabled (ne (include "la.caNamespace" .) .Release.Namespace) (ne ($tls.certManager.issuerRef.kind | default "") "ClusterIssuer") -}}
{{- fail "tls.certManager.issuerRef: with Cluster Autoscaler in another namespace it must be a ClusterIssuer, because cert-manager creates CA's client certificate in that namespace" -}}
{{- end -}}
{{- end -}}

{{/*
"true" if the worker's account gets its admission policies. This does not depend on the capabilities of the cluster, because `helm
template` does not know them.
*/}}
{{- define "la.policies" -}}
{{- and .Values.rbac.create .Values.rbac.policies -}}
{{- end -}}

{{/* "true" if there are kubeconfigs whose tokens may be renewed. */}}
{{- define "la.renewal" -}}
{{- $referred := false -}}
{{- range .Values.offers }}{{ with .credentials.secretRef }}{{ $referred = true }}{{ end }}{{ end -}}
{{- and .Values.renewal.enabled (not .Values.microvm.enabled) (or $referred .Values.offerSecrets.enabled .Values.offerServer.enabled) -}}
{{- end -}}
