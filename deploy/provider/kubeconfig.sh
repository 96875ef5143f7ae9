#!/usr/bin/env bash
# Prints the kubeconfig of the account that rbac.yaml has made, with kubectl's present context:
#
#   kubeconfig.sh CONSUMER-ID https://API-SERVER
#
# The address is the one by which the consumer reaches this cluster, which need not be the one you use.
set -euo pipefail
[ $# = 2 ] || { echo "usage: $0 CONSUMER-ID https://API-SERVER" >&2; exit 2; }
id=$1 server=$2
field() { kubectl -n liqo-autoscaler get secret "consumer-$id" -o "jsonpath={.data.$1}"; }
token=$(field token | base64 -d)
authority=$(field 'ca\.crt')
[ -n "$token" ] || { echo "Secret liqo-autoscaler/consumer-$id has no token yet: apply rbac.yaml, and wait a second" >&2; exit 1; }
cat <<EOF
apiVersion: v1
kind: Config
current-context: provider
contexts:
- name: provider
  context: {cluster: provider, user: consumer-$id}
clusters:
- name: provider
  cluster:
    server: "$server"
    certificate-authority-data: $authority
users:
- name: consumer-$id
  user: {token: $token}
EOF
