//go:build tools

package tools

import (
	_ "github.com/liqotech/liqo/cmd/crd-replicator"
	_ "github.com/liqotech/liqo/cmd/gateway"
	_ "github.com/liqotech/liqo/cmd/gateway/wireguard"
	_ "github.com/liqotech/liqo/cmd/ipam"
	_ "github.com/liqotech/liqo/cmd/liqo-controller-manager"
	_ "github.com/liqotech/liqo/cmd/liqoctl"
	_ "github.com/liqotech/liqo/cmd/virtual-kubelet"
	_ "github.com/liqotech/liqo/cmd/webhook"
)
