package pair

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
)

// setupProvider runs the command setup provider. It applies the manifests of the access, and writes the document to
// the file of --output or to stdout.
func (r *run) setupProvider(ctx context.Context, stdout io.Writer) error {
	if err := r.mayWrite(stdout); err != nil {
		return err
	}
	c, id, err := r.openSide(ctx, "provider", r.providerContext)
	if err != nil {
		return err
	}
	if id.ID == r.consumerID {
		return fmt.Errorf("--consumer-id %s: this is the id of the provider: give the id of the consumer, which liqoctl "+
			"info "+
			"prints there", r.consumerID)
	}
	g, err := r.providerSide(ctx, c, id, r.consumerID)
	if err != nil {
		return err
	}
	made, err := r.offer(ctx, g, true)
	if err != nil {
		return err
	}
	if err := r.applyAccess(ctx, g); err != nil {
		return err
	}
	if r.dryRun {
		fmt.Fprintln(r.out, "dry run: nothing was changed, and no token was requested")
		return nil
	}
	return r.deliver(ctx, g, made, stdout)
}

// mayWrite returns an error when the document would be written to a terminal or to an existing file.
func (r *run) mayWrite(stdout io.Writer) error {
	if r.output == "" {
		if !r.dryRun && cli.IsTerminal(stdout) {
			return errors.New("the document contains a token, so it is not written to a terminal: give --output FILE, or " +
				"redirect " +
				"the output")
		}
		return nil
	}
	to := &file{path: r.output}
	if err := to.read(); err != nil {
		return err
	}
	if to.exists {
		return fmt.Errorf("--output %s: the file exists: delete it, or give another name", r.output)
	}
	return nil
}

// deliver requests a token, and writes the document.
func (r *run) deliver(ctx context.Context, g *providerSide, made offer, stdout io.Writer) error {
	d, end, err := g.document(ctx, made, r.lasts)
	if err != nil {
		return err
	}
	raw, err := d.write()
	if err != nil {
		return err
	}
	fmt.Fprintf(r.out, "token: issued, expires on %s. Each run issues a token; earlier tokens stay valid until they "+
		"expire\n",
		end.UTC().Format(time.RFC3339))
	if r.output == "" {
		_, err = stdout.Write(raw)
	} else {
		err = (&file{path: r.output, content: string(raw)}).write(r.out, 0o600, false)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(r.out, "next, for the owner of %s:\n  liqo-autoscaler setup consumer --context CONTEXT --from FILE\n",
		r.consumerID)
	return nil
}

// setupConsumer runs the command setup consumer. The parameter raw is the document that setup provider has written.
func (r *run) setupConsumer(ctx context.Context, raw []byte) error {
	d, err := readDocument(raw)
	if err != nil {
		return err
	}
	if d.Access.Server, err = serverOf(r.server, d.Access.Server); err != nil {
		return err
	}
	c, id, err := r.openSide(ctx, "consumer", r.consumerContext)
	if err != nil {
		return err
	}
	if err := r.checkPair(id, d.Provider); err != nil {
		return err
	}
	if d.Consumer != id.ID {
		return fmt.Errorf("--from: the document is for consumer %s, but context %s leads to %s: request one from setup "+
			"provider --consumer-id %s", d.Consumer, r.consumerContext, id.ID, id.ID)
	}
	t, err := r.consumerSide(ctx, c, id, d.Provider.ID)
	if err != nil {
		return err
	}
	kubeconfig, err := d.kubeconfig()
	if err != nil {
		return err
	}
	data, err := t.secret.data(kubeconfig, d.Offer)
	if err != nil {
		return err
	}
	if err := t.secret.check(data); err != nil {
		return err
	}
	if err := r.checkShape(t, d.Offer); err != nil {
		return err
	}
	return r.finish(ctx, t, d.Offer, data)
}
