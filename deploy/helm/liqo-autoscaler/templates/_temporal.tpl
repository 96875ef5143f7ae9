{{/* The name of an image of another project: (dict repository tag digest). */}}
{{- define "la.imageOf" -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag }}{{ end -}}
{{- end -}}

{{/* Checks of the values of temporal that the schema cannot express. */}}
{{- define "la.checkTemporal" -}}
{{- $t := .Values.temporal -}}
{{- if $t.bundled.enabled -}}
{{- if $t.address -}}
{{- fail (printf "temporal.address is %s, and temporal.bundled.enabled is set: remove one of them" $t.address) -}}
{{- end -}}
{{- if or $t.tls.enabled $t.tls.ca.secretName $t.tls.clientCertificate.secretName $t.tls.serverName $t.apiKey.secretName -}}
{{- fail "temporal.tls and temporal.apiKey are for a Temporal of your own: the one of temporal.bundled has neither TLS nor a login" -}}
{{- end -}}
{{- if $t.setup.enabled -}}
{{- fail "temporal.setup.enabled: its Job would wait for the Temporal of this release, which is not there yet; with temporal.bundled the worker does its work" -}}
{{- end -}}
{{- range $component := list "worker" "grpcserver" -}}
{{- $n := (index $.Values $component).replicaCount -}}
{{- if not (or (kindIs "invalid" $n) (eq (int $n) 1)) -}}
{{- fail (printf "%s.replicaCount is %d: with temporal.bundled everything is in one pod; several need a Temporal of your own" $component (int $n)) -}}
{{- end -}}
{{- end -}}
{{- if .Values.worker.versioning.deploymentName -}}
{{- fail "worker.versioning: with temporal.bundled there is one worker; versions need a Temporal of your own" -}}
{{- end -}}
{{- if not (regexMatch "^1\\.32\\." $t.bundled.image.tag) -}}
{{- fail (printf "temporal.bundled.image.tag is %s: this chart knows the database of 1.32 alone" $t.bundled.image.tag) -}}
{{- end -}}
{{- $memory := dig "limits" "memory" "" $t.bundled.resources | toString -}}
{{- if not (or (regexMatch "^[1-9][0-9]*Gi$" $memory) (and (regexMatch "^[0-9]+Mi$" $memory) (ge (trimSuffix "Mi" $memory | int) 1024))) -}}
{{- fail (printf "temporal.bundled.resources.limits.memory is %q: Temporal needs 1Gi or more, in Gi or Mi" $memory) -}}
{{- end -}}
{{- end -}}
{{- end -}}
