{{/* Names and labels of the operator's own objects. */}}
{{- define "herdkeeper.serviceAccount" -}}
{{ .Values.serviceAccount.name | default .Release.Name }}
{{- end }}

{{- define "herdkeeper.selector" -}}
app.kubernetes.io/name: herdkeeper-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "herdkeeper.labels" -}}
{{ include "herdkeeper.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* Cluster-wide objects carry the namespace in their name: two releases must not share one. */}}
{{- define "herdkeeper.clusterName" -}}
{{ .Release.Namespace }}-{{ .Release.Name }}
{{- end }}
