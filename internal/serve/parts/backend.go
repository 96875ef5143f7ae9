package parts

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/liqo"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/microvm"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/account"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// BackendFlags selects the backend. A backend creates and removes nodes.
type BackendFlags struct {
	Kind, Kubeconfig, liqoNamespace, world string
	tenantRole, microvmNamespace           string
	anyLiqo                                bool
	Sources                                Sources
}

// Register adds the flags. A new backend must be added in two places of this function, in Backend, in CheckKind, and
// in the list adapters of internal/imports.
func (f *BackendFlags) Register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.Kind, "backend", "liqo",
		"what provides nodes: liqo, microvm for hosts of microVMs, or sim for a simulated world")
	cli.Values(cmd, "backend", "liqo", "microvm", "sim")
	cmd.Flags().StringVar(&f.Kubeconfig, "kubeconfig", "", "access to the consumer cluster (default: in-cluster)")
	cmd.Flags().StringVar(&f.liqoNamespace, "liqo-namespace", "liqo", "namespace of Liqo in all clusters")
	cmd.Flags().BoolVar(&f.anyLiqo, "any-liqo-version", false,
		"peer even if the versions of Liqo are incompatible or too new, and create several nodes on one provider even if "+
			"this cluster has Liqo 1.1 or earlier")
	cmd.Flags().StringVar(&f.world, "world", "", "file of the simulated world, for --backend sim")
	cmd.Flags().StringVar(&f.tenantRole, "tenant-role", "",
		"ClusterRole that the worker binds to its own ServiceAccount in each of Liqo's tenant namespaces")
	cmd.Flags().StringVar(&f.microvmNamespace, "microvm-namespace", "",
		"namespace of the consumer cluster for the worker's records of machines, for --backend microvm")
	f.Sources.Register(cmd)
}

// Backend creates the selected backend. It also returns the access to the consumer cluster, or nil for a simulated
// cluster.
func (f BackendFlags) Backend(hub workflows.Hub) (backend.Backend, *rest.Config, error) {
	switch f.Kind {
	case "sim":
		w, err := f.openWorld()
		if err != nil {
			return nil, nil, err
		}
		return sim.New(w, sim.Options{Hub: string(hub)}), nil, nil
	case "liqo":
		access, err := serve.Consumer(f.Kubeconfig)
		if err != nil {
			return nil, nil, err
		}
		rights, err := f.tenantRights(access)
		if err != nil {
			return nil, nil, err
		}
		b, err := liqo.New(liqo.Config{Consumer: access, Hub: string(hub), LiqoNamespace: f.liqoNamespace,
			TenantRights: rights, AnyLiqo: f.anyLiqo})
		return b, access, err
	case "microvm":
		if f.microvmNamespace == "" {
			return nil, nil, fmt.Errorf("--backend microvm needs --microvm-namespace")
		}
		access, err := serve.Consumer(f.Kubeconfig)
		if err != nil {
			return nil, nil, err
		}
		b, err := microvm.New(microvm.Config{Consumer: access, Namespace: f.microvmNamespace, Hub: string(hub)})
		return b, access, err
	default:
		return nil, nil, f.CheckKind()
	}
}

// openWorld opens the simulated world.
func (f BackendFlags) openWorld() (*sim.World, error) {
	if f.world == "" {
		return nil, fmt.Errorf("--backend sim needs --world")
	}
	return sim.Open(f.world)
}

// tenantRights returns the ClusterRole for tenant namespaces, and the ServiceAccount to which the worker binds this
// role there. It returns nil without --tenant-role, because the worker's permissions then already cover tenant
// namespaces.
func (f BackendFlags) tenantRights(access *rest.Config) (*liqo.TenantRights, error) {
	if f.tenantRole == "" {
		return nil, nil
	}
	namespace, name, err := account.Of(access.BearerToken)
	if err != nil {
		return nil, fmt.Errorf("--tenant-role needs a worker that runs with a ServiceAccount's token: %w", err)
	}
	return &liqo.TenantRights{Role: f.tenantRole, Namespace: namespace, Account: name}, nil
}

// CheckKind returns an error for an unknown backend.
func (f BackendFlags) CheckKind() error {
	if f.Kind != "liqo" && f.Kind != "sim" && f.Kind != "microvm" {
		return fmt.Errorf("--backend %q: use liqo, microvm or sim", f.Kind)
	}
	return nil
}
