#!/usr/bin/env bash
# Builds what the lab runs, from Go modules alone: etcd, the Kubernetes control plane, kubectl, helm, the temporal CLI and
# the Liqo components, with Liqo's chart beside them. About 15 minutes on 2 cores from nothing, at once when it is there.
#
#   build.sh [DIR]         build into DIR (default: what --print-dir prints)
#   build.sh --print-dir   print the default folder: the user's cache, named by the versions in it
#   build.sh --print-tag   print Liqo's version, which lab.py takes as --tag
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export GOFLAGS=-buildvcs=false
helm=v3.17.0 temporal=v1.5.1
version() { awk -v m="$2" '$1 == m || $2 == m { print $NF == "indirect" ? $(NF-2) : $NF; exit }' "$here/modules/$1/go.mod"; }
kube=$(version kubernetes k8s.io/kubernetes)
liqo=$(version liqo github.com/liqotech/liqo)
etcd=$(version etcd go.etcd.io/etcd/server/v3)
dir=${XDG_CACHE_HOME:-$HOME/.cache}/liqo-autoscaler/lab-kube-$kube-liqo-$liqo-etcd-$etcd-temporal-$temporal
case ${1:-} in
  --print-dir) echo "$dir"; exit ;;
  --print-tag) echo "$liqo"; exit ;;
esac
bin=$(mkdir -p "${1:-$dir}" && cd "${1:-$dir}" && pwd)
hint="LAB_BIN=$bin $here/lab.py up --tag $liqo --providers 2"
if [ -e "$bin/.complete" ]; then echo "complete: $bin; start with: $hint"; exit; fi
exec 9>"$bin/.lock"; flock 9 # one build at a time

minor=${kube#v1.}; minor=${minor%%.*}
v="-X k8s.io/component-base/version.gitVersion=$kube -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=$minor -X k8s.io/client-go/pkg/version.gitVersion=$kube"
[ -x "$bin/etcd" ] || (cd "$here/modules/etcd" && go build -ldflags '-s -w' -o "$bin/etcd" go.etcd.io/etcd/server/v3)
(cd "$here/modules/kubernetes" && for c in kube-apiserver kube-controller-manager kube-scheduler kubectl; do
  [ -x "$bin/$c" ] || go build -ldflags "-s -w $v" -o "$bin/" "k8s.io/kubernetes/cmd/$c"; done)
mkdir -p "$bin/liqo"
(cd "$here/modules/liqo" && for c in liqo-controller-manager crd-replicator virtual-kubelet webhook liqoctl; do
  [ -x "$bin/liqo/$c" ] || go build -ldflags '-s -w' -o "$bin/liqo/" "github.com/liqotech/liqo/cmd/$c"; done)
[ -x "$bin/helm" ] || GOBIN="$bin" go install "helm.sh/helm/v3/cmd/helm@$helm"
[ -x "$bin/temporal" ] || GOBIN="$bin" go install "github.com/temporalio/cli/cmd/temporal@$temporal"
if [ ! -d "$bin/chart" ]; then
  chart=$(cd "$here/modules/liqo" && go list -m -f '{{.Dir}}' github.com/liqotech/liqo)/deployments/liqo
  rm -rf "$bin/chart.new" && cp -r "$chart" "$bin/chart.new" && chmod -R u+w "$bin/chart.new" && mv "$bin/chart.new" "$bin/chart"
fi
touch "$bin/.complete"
echo "built into $bin; start with: $hint"
