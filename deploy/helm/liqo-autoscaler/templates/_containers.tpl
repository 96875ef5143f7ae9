{{/* The Secret with the certificate authorities of the discovery server; "" means the system's authorities. */}}
{{- define "la.discoveryCASecret" -}}
{{- $own := and .Values.offerServer.enabled (not .Values.offerServer.url) -}}
{{- .Values.offerServer.ca.secretName | default (ternary (include "la.discoverySecret" .) "" $own) -}}
{{- end -}}

{{/* The worker's container: (list $ "image"). */}}
{{- define "la.workerContainer" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- with $root -}}
{{- $caSecret := include "la.discoveryCASecret" . -}}
- name: worker
  {{- include "la.container" (list . "worker" $image) | nindent 2 }}
  args:
  - worker
  - --hub={{ .Values.hub }}
  {{- if .Values.microvm.enabled }}
  - --backend=microvm
  - --microvm-namespace={{ required "microvm.namespace is needed: one for the worker's records alone" .Values.microvm.namespace }}
  {{- else }}
  - --liqo-namespace={{ .Values.liqo.namespace }}
  {{- if .Values.liqo.anyVersion }}
  - --any-liqo-version
  {{- end }}
  {{- if .Values.rbac.create }}
  - --tenant-role={{ include "la.fullname" . }}-worker-tenant
  {{- end }}
  {{- end }}
  - --slots={{ int .Values.worker.slots }}
  - --driver-slots={{ int .Values.worker.driverSlots }}
  {{- if .Values.market.enabled }}
  - --market-namespace={{ .Release.Namespace }}
  {{- if .Values.mirror.enabled }}
  - --mirror-namespace={{ .Release.Namespace }}
  {{- end }}
  {{- end }}
  {{- with .Values.worker.versioning.deploymentName }}
  - --deployment-name={{ . }}
  {{- end }}
  {{- with .Values.worker.probeURL }}
  - --probe-url={{ . }}
  {{- end }}
  {{- if .Values.offers }}
  - --offers=/etc/liqo-autoscaler/offers/offers.yaml
  {{- end }}
  {{- if .Values.offerSecrets.enabled }}
  - --offer-secrets-namespace={{ .Values.offerSecrets.namespace | default .Release.Namespace }}
  {{- end }}
  {{- with .Values.offerServer }}
  {{- if .enabled }}
  - --discovery-url={{ .url | default (printf "https://%s-discovery.%s.svc:%v" (include "la.fullname" $root) $root.Release.Namespace $root.Values.discovery.service.port) }}
  {{- if .certificate.secretName }}
  - --discovery-cert=/etc/liqo-autoscaler/discovery-certificate/tls.crt
  - --discovery-key=/etc/liqo-autoscaler/discovery-certificate/tls.key
  {{- else }}
  - --discovery-token-file=/etc/liqo-autoscaler/discovery-token/{{ .token.key }}
  {{- end }}
  {{- if $caSecret }}
  - --discovery-ca=/etc/liqo-autoscaler/discovery-ca/{{ .ca.key }}
  {{- end }}
  - --discovery-secret-namespaces={{ .secretNamespaces | default (list $root.Release.Namespace) | join "," }}
  {{- with .networkCIDRs }}
  - --discovery-network-cidrs={{ join "," . }}
  {{- end }}
  {{- end }}
  {{- end }}
  {{- include "la.temporalArgs" . | nindent 2 }}
  - --search-attributes={{ .Values.temporal.searchAttributes }}
  {{- if .Values.temporal.bundled.enabled }}
  - --bundled-temporal
  - --bundled-temporal-retention={{ .Values.temporal.setup.retention }}
  {{- end }}
  {{- include "la.commonArgs" (list . "worker") | nindent 2 }}
  {{- with .Values.worker.extraArgs }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  ports:
  {{- include "la.ports" (list . "worker") | nindent 2 }}
  {{- include "la.probes" (list . "worker") | nindent 2 }}
  volumeMounts:
  {{- if .Values.offers }}
  - {name: offers, mountPath: /etc/liqo-autoscaler/offers, readOnly: true}
  {{- end }}
  {{- if .Values.offerServer.enabled }}
  {{- if .Values.offerServer.certificate.secretName }}
  - {name: discovery-certificate, mountPath: /etc/liqo-autoscaler/discovery-certificate, readOnly: true}
  {{- else }}
  - {name: discovery-token, mountPath: /etc/liqo-autoscaler/discovery-token, readOnly: true}
  {{- end }}
  {{- if $caSecret }}
  - {name: discovery-ca, mountPath: /etc/liqo-autoscaler/discovery-ca, readOnly: true}
  {{- end }}
  {{- end }}
  {{- include "la.temporalMounts" . | nindent 2 }}
  {{- include "la.tokenMount" . | nindent 2 }}
  {{- with .Values.worker.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}
{{- end -}}

{{- define "la.workerVolumes" -}}
{{- $caSecret := include "la.discoveryCASecret" . -}}
{{- if .Values.offers }}
- name: offers
  configMap: {name: {{ include "la.fullname" . }}-offers}
{{- end }}
{{- if .Values.offerServer.enabled }}
{{- if .Values.offerServer.certificate.secretName }}
- name: discovery-certificate
  secret:
    secretName: {{ .Values.offerServer.certificate.secretName }}
    items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]
{{- else }}
- name: discovery-token
  secret:
    secretName: {{ .Values.offerServer.token.secretName }}
    items: [{key: {{ .Values.offerServer.token.key }}, path: {{ .Values.offerServer.token.key }}}]
{{- end }}
{{- if $caSecret }}
- name: discovery-ca
  secret:
    secretName: {{ $caSecret }}
    items: [{key: {{ .Values.offerServer.ca.key }}, path: {{ .Values.offerServer.ca.key }}}] # without the private key
{{- end }}
{{- end }}
{{- with .Values.worker.extraVolumes }}
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end -}}

{{/* The gRPC server's container. */}}
{{- define "la.grpcserverContainer" -}}
- name: grpcserver
  {{- include "la.container" (list . "grpcserver") | nindent 2 }}
  args:
  - grpcserver
  - --config=/etc/liqo-autoscaler/nodegroups/nodegroups.yaml
  - --listen=:8086
  {{- if .Values.market.enabled }}
  - --market-namespace={{ .Release.Namespace }}
  {{- end }}
  {{- if not .Values.tls.plaintext }}
  - --tls-cert=/etc/liqo-autoscaler/tls/tls.crt
  - --tls-key=/etc/liqo-autoscaler/tls/tls.key
  - --tls-client-ca=/etc/liqo-autoscaler/tls/ca.crt
  {{- with include "la.allowedNames" . }}
  - --tls-allowed-names={{ . }}
  {{- end }}
  {{- else }}
  - --insecure-plaintext
  {{- end }}
  {{- include "la.temporalArgs" . | nindent 2 }}
  {{- include "la.commonArgs" (list . "grpcserver") | nindent 2 }}
  {{- with .Values.grpcserver.extraArgs }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  ports:
  - {name: grpc, containerPort: 8086, protocol: TCP}
  {{- include "la.ports" (list . "grpcserver") | nindent 2 }}
  {{- include "la.probes" (list . "grpcserver") | nindent 2 }}
  volumeMounts:
  - {name: nodegroups, mountPath: /etc/liqo-autoscaler/nodegroups, readOnly: true}
  {{- if not .Values.tls.plaintext }}
  - {name: tls, mountPath: /etc/liqo-autoscaler/tls, readOnly: true}
  {{- end }}
  {{- include "la.temporalMounts" . | nindent 2 }}
  {{- include "la.tokenMount" . | nindent 2 }}
  {{- with .Values.grpcserver.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "la.grpcserverVolumes" -}}
- name: nodegroups
  configMap: {name: {{ include "la.fullname" . }}-nodegroups}
{{- with include "la.tlsSecret" . }}
- name: tls
  secret: {secretName: {{ . }}}
{{- end }}
{{- with .Values.grpcserver.extraVolumes }}
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end -}}
