#!/usr/bin/env bash
# Writes the manifest with which krew installs the archives of a release as `kubectl liqo-autoscaler`:
#
#   deploy/release/krew.sh 0.1.0 https://github.com/someone/liqo-autoscaler/releases/tag/v0.1.0 .run/dist/checksums.txt .run/dist/liqo-autoscaler.yaml
#
# The second argument is the page of the release. The manifest has each archive of the program in the checksums. goreleaser calls
# this script after it has written the checksums, and adds the manifest to the release.
set -euo pipefail
version=$1 page=$2 sums=$3 manifest=$4
downloads=${page/\/releases\/tag\//\/releases\/download\/}
platforms=$(while read -r sum name; do
	platform=${name#"liqo-autoscaler_${version}_"}
	platform=${platform%.tar.gz}
	[ "$name" = "liqo-autoscaler_${version}_${platform}.tar.gz" ] || continue
	cat <<-END
	  - selector:
	      matchLabels:
	        os: ${platform%_*}
	        arch: ${platform#*_}
	    uri: $downloads/$name
	    sha256: $sum
	    files:
	    - {from: liqo-autoscaler, to: .}
	    - {from: LICENSE, to: .}
	    bin: liqo-autoscaler
	END
done <"$sums")
[ -n "$platforms" ] || { echo "$sums has no archive liqo-autoscaler_${version}_OS_ARCH.tar.gz" >&2 && exit 1; }
cat >"$manifest" <<END
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: liqo-autoscaler
spec:
  version: v$version
  homepage: ${page%/releases/*}
  shortDescription: Inspect and operate liqo-autoscaler
  description: |
    liqo-autoscaler lets the Kubernetes Cluster Autoscaler grow a cluster with Liqo virtual nodes of other clusters.
    This plugin shows its node groups, instances and offers (status, offers, report), explains pending pods and failed
    instances (explain), checks an installation (doctor), pauses node groups and cordons providers.
  caveats: |
    Most commands need the address of Temporal: set TEMPORAL_ADDRESS, or give --temporal-address.
  platforms:
$platforms
END
