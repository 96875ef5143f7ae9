package pair

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/providers"
)

// run is one run of the command setup.
type run struct {
	*options
	out io.Writer // receives the messages
	now func() time.Time
}

// openSide connects to a cluster, and prints and returns its identity.
func (r *run) openSide(ctx context.Context, side, context string) (c *cluster, id identity, err error) {
	if c, err = r.open(side, r.kubeconfig, context); err != nil {
		return nil, id, err
	}
	if id, err = c.identify(ctx); err != nil {
		return nil, id, err
	}
	fmt.Fprintf(r.out, "%s %s: context %s, Kubernetes %s, Liqo %s in namespace %s\n", side, id.ID, context, id.Kubernetes,
		id.Liqo, id.liqoNamespace)
	if !id.ready {
		r.warn("Liqo's controllers are not ready in the %s %s: see kubectl --context %s -n %s get pods", side, id.ID, context,
			id.liqoNamespace)
	}
	return c, id, nil
}

func (r *run) warn(format string, args ...any) { fmt.Fprintf(r.out, "WARNING: "+format+"\n", args...) }

// setupBoth runs setup for a consumer and a provider.
func (r *run) setupBoth(ctx context.Context) error {
	consumer, here, err := r.openSide(ctx, "consumer", r.consumerContext)
	if err != nil {
		return err
	}
	provider, there, err := r.openSide(ctx, "provider", r.providerContext)
	if err != nil {
		return err
	}
	if err := r.checkPair(here, there); err != nil {
		return err
	}
	t, err := r.consumerSide(ctx, consumer, here, there.ID)
	if err != nil {
		return err
	}
	g, err := r.providerSide(ctx, provider, there, here.ID)
	if err != nil {
		return err
	}
	made, err := r.offer(ctx, g, t.secret.live == nil || r.changedAmounts)
	if err != nil {
		return err
	}
	if err := r.checkShape(t, made); err != nil {
		return err
	}
	kubeconfig, err := r.validCredentials(ctx, g, t)
	if err != nil {
		return err
	}
	return r.exchange(ctx, g, t, made, kubeconfig)
}

// checkPair prints warnings about the two clusters, and returns an error if they cannot be a consumer and its provider.
func (r *run) checkPair(here, there identity) error {
	warning, err := checkIdentities(here, there)
	if warning != "" {
		r.warn("%s", warning)
	}
	return err
}

// checkShape returns an error or prints a warning when no node of the group fits the offer.
func (r *run) checkShape(t *consumerSide, made offer) error {
	warning, err := r.fits(t, made)
	if warning != "" {
		r.warn("%s", warning)
	}
	return err
}

// validCredentials returns the credentials in the consumer's Secret, or nil if they are missing or not valid.
func (r *run) validCredentials(ctx context.Context, g *providerSide, t *consumerSide) ([]byte, error) {
	kubeconfig := t.secret.kubeconfig()
	if kubeconfig == nil {
		return nil, nil
	}
	valid, err := g.valid(ctx, kubeconfig, g.consumer, g.server, r.now())
	if err != nil || !valid {
		return nil, err
	}
	return kubeconfig, nil
}

// exchange applies the provider's manifests and stores the offer. If kubeconfig is nil, exchange requests a token and
// creates new credentials.
func (r *run) exchange(ctx context.Context, g *providerSide, t *consumerSide, made offer, kubeconfig []byte) error {
	probe := kubeconfig
	var err error
	if probe == nil {
		if probe, err = providers.Kubeconfig(g.server, nil, g.consumer, "none"); err != nil {
			return err
		}
	}
	data, err := t.secret.data(probe, made)
	if err != nil {
		return err
	}
	if err := t.secret.check(data); err != nil {
		return err
	}
	if err := r.applyAccess(ctx, g); err != nil {
		return err
	}
	switch {
	case kubeconfig != nil:
		fmt.Fprintln(r.out, "token: unchanged")
	case r.dryRun:
		fmt.Fprintln(r.out, "token: would be requested")
	default:
		d, end, err := g.document(ctx, made, r.lasts)
		if err != nil {
			return err
		}
		fmt.Fprintf(r.out, "token: issued, expires on %s; the chart renews it\n", end.UTC().Format(time.RFC3339))
		if kubeconfig, err = d.kubeconfig(); err != nil {
			return err
		}
		if data, err = t.secret.data(kubeconfig, made); err != nil {
			return err
		}
	}
	return r.finish(ctx, t, made, data)
}

// applyAccess applies the manifests that give the consumer access to the provider.
func (r *run) applyAccess(ctx context.Context, g *providerSide) error {
	done, err := apply(ctx, g.wants, g.consumer, r.dryRun)
	if err != nil {
		return fmt.Errorf("%s: %w", g, err)
	}
	fmt.Fprintf(r.out, "access of %s to %s: objects %s\n", g.consumer, g.id.ID, done)
	providers.Warn(r.out, g.consumer, g.policies)
	return nil
}

// finish stores the offer and prints the next command.
func (r *run) finish(ctx context.Context, t *consumerSide, made offer, data map[string][]byte) error {
	if len(made.Resources) > 0 {
		fmt.Fprintf(r.out, "offer: %s, which is free now. The provider's agent can keep the amounts current: "+
			"docs/discovery.md\n",
			text(made.Resources))
	}
	if err := t.store(ctx, r.out, data, r.dryRun); err != nil {
		return err
	}
	if r.dryRun {
		fmt.Fprintln(r.out, "dry run: nothing was changed")
		return nil
	}
	t.next(r.out)
	return nil
}
