package pair

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/providers"
)

// consumerSide is the consumer's part of a setup: the Secret for the offer, and the values files of the charts.
type consumerSide struct {
	*cluster
	id     identity
	secret *stored
	files  []*file
}

// consumerSide reads and checks the consumer cluster. It changes nothing.
func (o *options) consumerSide(ctx context.Context, c *cluster, id identity, provider string) (*consumerSide, error) {
	if err := providers.CheckConsumer(id.ID); err != nil {
		return nil, fmt.Errorf("%s: its Liqo cluster id is too long for a tenant namespace: %w", c, err)
	}
	t := &consumerSide{cluster: c, id: id, secret: &stored{kube: c.kube, namespace: o.namespace,
		name: cmp.Or(o.name, provider), provider: provider}}
	if err := t.secret.read(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", c, err)
	}
	certManager, err := c.certManager(ctx)
	if err != nil {
		return nil, err
	}
	ours, err := o.values.chart(id, certManager)
	if err != nil {
		return nil, err
	}
	theirs, err := o.values.autoscaler(id.ID, o.namespace)
	if err != nil {
		return nil, err
	}
	for i, content := range []string{ours, theirs} {
		f := &file{path: o.files[i], content: content}
		if err := f.read(); err != nil {
			return nil, err
		}
		t.files = append(t.files, f)
	}
	return t, nil
}

// fits checks that a node of the group in the values file fits the offer. If it does not fit, fits returns an error.
// If setup keeps an existing values file, fits returns only a warning.
func (o *options) fits(t *consumerSide, made offer) (warning string, err error) {
	why := ""
	if len(made.Resources) > 0 {
		why = made.unfit(o.values.shape)
	}
	switch {
	case why == "":
		return "", nil
	case t.files[0].exists:
		return fmt.Sprintf("no node of the shape %s fits the offer: %s. Only a node group with another shape can use the "+
			"offer",
			text(o.values.shape), why), nil
	}
	return "", fmt.Errorf("no node of the shape %s fits the offer of provider %s: %s. Give a smaller --shape",
		text(o.values.shape), made.Provider, why)
}

// store writes the Secret with the offer, and the values files.
func (t *consumerSide) store(ctx context.Context, out io.Writer, data map[string][]byte, dry bool) error {
	fmt.Fprintf(out, "%s: %s\n", t.secret, t.secret.change(data))
	if !dry {
		if err := ensureNamespace(ctx, t.kube, t.secret.namespace); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		if err := t.secret.put(ctx, data); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
	}
	for _, f := range t.files {
		if err := f.write(out, 0o644, dry); err != nil {
			return err
		}
	}
	return nil
}

// next prints the command that the user runs next.
func (t *consumerSide) next(out io.Writer) {
	fmt.Fprintf(out, "next:\n  helm --kube-context %s upgrade --install %s deploy/helm/liqo-autoscaler -n %s -f %s\n",
		t.context, release, t.secret.namespace, t.files[0].path)
}
