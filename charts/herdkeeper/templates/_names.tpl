{{/* Names and labels of the operator's own objects. */}}
{{- define "herdkeeper.fullname" -}}
{{ .Values.fullnameOverride | default .Release.Name }}
{{- end }}

{{- define "herdkeeper.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "herdkeeper.fullname" .) }}
{{- end }}

{{- define "herdkeeper.selector" -}}
app.kubernetes.io/name: herdkeeper-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "herdkeeper.labels" -}}
{{ include "herdkeeper.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 }}
{{- end }}

{{/* Cluster-wide objects carry the namespace in their name: two releases must not share one. */}}
{{- define "herdkeeper.clusterName" -}}
{{ .Release.Namespace }}-{{ include "herdkeeper.fullname" . }}
{{- end }}

{{/* The rights of Spark drivers with executors. The operator binds it to the drivers of runs. */}}
{{- define "herdkeeper.driverRole" -}}
{{ include "herdkeeper.clusterName" . }}-driver
{{- end }}

{{/* An image of this project, of a list of the root context and the image's name. */}}
{{- define "herdkeeper.image" -}}
{{- $images := (index . 0).Values.images -}}
{{- $name := index . 1 -}}
{{- $digest := get $images.digests $name -}}
{{- if $images.registry }}{{ $images.registry }}/{{ end }}herdkeeper/{{ $name }}
{{- if $digest }}@{{ $digest }}{{ else }}:{{ $images.tag | default (index . 0).Chart.AppVersion }}{{ end }}
{{- end }}

{{/* Restricts an admission policy to the watched namespaces. Elsewhere another release's operator may act, which it would refuse. */}}
{{- define "herdkeeper.watchedOnly" -}}
namespaceSelector:
  {{- with .Values.watchNamespaces }}
  matchExpressions:
    - key: kubernetes.io/metadata.name
      operator: In
      values: {{ toJson . }}
  {{- else }} {}
  {{- end }}
{{- end }}
