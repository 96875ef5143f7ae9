package operate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/doctor"
	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/setup"
	"github.com/liqo-autoscaler/liqo-autoscaler/deploy/provider"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/account"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/searchattr"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// doctorFlags selects the parts of the installation that doctor examines.
type doctorFlags struct {
	kubeconfig, output string
	market             serve.Published
	noCluster          bool
	providers          []string // kubeconfigs
}

// NewDoctor returns the command doctor.
func NewDoctor(c *connect.Common) *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check an installation for errors",
		Long: `Check an installation for errors. With your kubeconfig the command checks processes, permissions, certificates and
Cluster Autoscaler's flags in the consumer cluster. It also checks Temporal, the node groups and the offers. For each
--provider-kubeconfig it checks the cluster of that provider. It changes nothing, and reads certificates, but never
keys. It lists the objects that it has no permission to read. It exits with 1 if it finds an error, and with 0 if it
finds only warnings.`,
		Example: "  liqo-autoscaler doctor\n  liqo-autoscaler doctor --provider-kubeconfig milan.kubeconfig -o json",
		Args:    cobra.NoArgs,
		RunE: cli.Brief(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			in, err := f.read(ctx, c)
			if err != nil {
				return err
			}
			report := doctor.Examine(ctx, in)
			if err := printExplained(cmd.OutOrStdout(), f.output, report); err != nil {
				return err
			}
			if report.Failed() {
				return fmt.Errorf("this installation has errors")
			}
			return nil
		}),
	}
	serve.RegisterKubeconfig(cmd, &f.kubeconfig)
	cmd.Flags().BoolVar(&f.noCluster, "no-cluster", false, "check only Temporal and the providers")
	cmd.Flags().StringArrayVar(&f.providers, "provider-kubeconfig", nil,
		"file with the credentials of an offer, to check that provider too; can be repeated")
	f.market.Register(cmd)
	registerExplained(cmd, &f.output)
	c.RegisterHub(cmd)
	return cmd
}

// read connects to the parts of the installation and reads the input of the checks.
func (f *doctorFlags) read(ctx context.Context, c *connect.Common) (in doctor.Installation, err error) {
	in = doctor.Installation{Now: time.Now(), Flags: doctorsFlags}
	if !f.noCluster {
		access, err := serve.Personal(f.kubeconfig)
		if err != nil {
			return in, fmt.Errorf("%w; --no-cluster omits it", err)
		}
		if in.Kube, err = kubernetes.NewForConfig(access); err != nil {
			return in, fmt.Errorf("open the consumer cluster: %w", err)
		}
		if in.Skew, err = skew(ctx, access); err != nil {
			return in, fmt.Errorf("request to the consumer cluster's API server: %w", err)
		}
	}
	if in.Kube != nil || f.market.File != "" {
		in.Market, in.MarketNote = f.market.Read(ctx, in.Kube, string(c.Hub))
	}
	for _, path := range f.providers {
		p, err := aProvider(path)
		if err != nil {
			return in, err
		}
		in.Providers = append(in.Providers, p)
	}
	found := doctor.Temporal{Queue: c.Hub.TaskQueue(c.TaskQueue)}
	found.Err = c.RunAt(ctx, func(t client.Client, target *connect.Target) error {
		return readTemporal(ctx, c, t, target.Namespace, &found)
	})
	found.Stuck = errors.Is(found.Err, connect.ErrDatabase)
	in.Temporal = &found
	return in, nil
}

// doctorsFlags returns Cluster Autoscaler's flags in the form that doctor uses.
func doctorsFlags(provision time.Duration) (flags []doctor.Flag) {
	for _, f := range setup.CAFlags(provision) {
		flags = append(flags, doctor.Flag{Name: f.Name, Value: f.Value, Why: strings.Join(f.Why, " ")})
	}
	return flags
}

// skew returns the time by which an API server's clock is ahead of this machine's clock, rounded to seconds.
func skew(ctx context.Context, access *rest.Config) (time.Duration, error) {
	web, err := rest.HTTPClientFor(access)
	if err != nil {
		return 0, err
	}
	url, _, err := rest.DefaultServerUrlFor(access)
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url.JoinPath("version").String(), nil)
	if err != nil {
		return 0, err
	}
	answer, err := web.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if there, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		return time.Until(there), nil
	}
	return 0, nil // the response of a gateway may lack a date, so the skew is unknown
}

func aProvider(path string) (p doctor.Provider, err error) {
	access, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return p, fmt.Errorf("--provider-kubeconfig %s: %w", path, err)
	}
	access.Timeout = serve.MarketTimeout
	p = doctor.Provider{Name: filepath.Base(path), Life: account.LifeOf(access)}
	if _, name, err := account.Of(access.BearerToken); err == nil {
		if id, ok := strings.CutPrefix(name, provider.Account("")); ok {
			p.ConsumerID = id
		}
	}
	p.Kube, err = kubernetes.NewForConfig(access)
	return p, err
}

// readTemporal reads the doctor's input from Temporal.
func readTemporal(ctx context.Context, c *connect.Common, t client.Client, namespace string,
	found *doctor.Temporal) error {
	info, err := t.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
	if err != nil {
		return err
	}
	found.Version = info.GetServerVersion()
	entities := flow.NewEntities(t, c.Hub, c.TaskQueue)
	if found.Groups, err = entities.Groups(ctx); err != nil {
		return err
	}
	if found.Providers, err = entities.Providers(ctx); err != nil {
		return err
	}
	ended, err := flow.NewHub(t, c.Hub, c.TaskQueue).Ended(ctx)
	if found.Ended = ended.Rows; err != nil {
		return err
	}
	queue, err := t.DescribeTaskQueue(ctx, found.Queue, enums.TASK_QUEUE_TYPE_WORKFLOW)
	if err != nil {
		return err
	}
	found.Polled = len(queue.GetPollers()) > 0
	found.Missing, err = searchattr.Missing(ctx, t, namespace)
	return err
}
