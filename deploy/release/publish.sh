#!/usr/bin/env bash
# Builds images and charts of a release, pushes and signs them:
#
#   VERSION=0.1.0 IMAGE=ghcr.io/someone/liqo-autoscaler CHARTS=ghcr.io/someone/charts deploy/release/publish.sh
#
# The image of the agent is IMAGE-agent. Each chart names its image by digest. The images with their digests are written to .run/images.txt,
# and the SBOMs that ko attaches to them to .run/sbom. COSIGN_KEY
# signs with that key, offline, in place of the identity of the GitHub workflow; PLAIN_HTTP=1 pushes charts to a registry
# without TLS. Running it twice does no harm.
set -euo pipefail
cd "$(dirname "$0")/../.."
: "${VERSION:?}" "${IMAGE:?}" "${CHARTS:?}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sign=(bin/cosign sign --yes)
if [ -n "${COSIGN_KEY:-}" ]; then sign+=("--key=$COSIGN_KEY" --tlog-upload=false); fi

rm -rf .run/sbom .run/images.txt && mkdir -p .run/sbom
for program in liqo-autoscaler liqo-autoscaler-agent; do
	image=$(make --no-print-directory image VERSION="$VERSION" PROGRAM=$program IMAGE="${IMAGE}${program#liqo-autoscaler}" \
		KO_FLAGS=--sbom-dir=.run/sbom | tail -n 1)
	"${sign[@]}" --recursive "$image"
	echo "$image" >>.run/images.txt
	cp -r "deploy/helm/$program" "$work/"
	sed -i "s/^  digest: \"\"/  digest: ${image#*@}/" "$work/$program/values.yaml" # the chart names this image, whatever its tag becomes
done
for chart in "$work"/liqo-autoscaler*; do
	bin/helm package "$chart" --version "$VERSION" --app-version "$VERSION" --destination "$work"
	bin/helm push "$work/$(basename "$chart")-$VERSION.tgz" "oci://$CHARTS" ${PLAIN_HTTP:+--plain-http} 2>&1 | tee "$work/pushed"
	"${sign[@]}" "$CHARTS/$(basename "$chart")@$(awk '/^Digest:/ {print $2}' "$work/pushed")"
done
