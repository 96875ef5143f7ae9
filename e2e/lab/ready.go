package lab

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// ready waits until every cluster's node is Ready and its Liqo processes answer their health probes. API servers answer
// already: lab.py waits for them.
func (l *Lab) ready(ctx context.Context) error {
	for i, cluster := range append([]string{Consumer}, l.Providers...) {
		for _, port := range []int{l.shift + 8100 + 20*i + 1, l.shift + 8100 + 20*i + 5} { // lab.py: liqo-controller-manager, webhook
			url := "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) + "/readyz"
			if err := poll(ctx, func() error { return probe(ctx, url) }); err != nil {
				return fmt.Errorf("wait for Liqo of %s at %s: %w", cluster, url, err)
			}
		}
		kubectl := exec.CommandContext(ctx, filepath.Join(l.Bin, "kubectl"), "--kubeconfig", l.Kubeconfig(cluster),
			"wait", "--for=condition=Ready", "node", "--all", "--timeout=60s")
		if out, err := kubectl.CombinedOutput(); err != nil {
			return fmt.Errorf("wait for nodes of %s: %w: %s", cluster, err, out)
		}
	}
	return nil
}

func probe(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", res.Status)
	}
	return nil
}

func poll(ctx context.Context, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-tick.C:
		}
	}
}
