package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/deploy/examples"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/client"
)

// The sample offers end soon after whoever put them has stopped, as an agent's would. They are put again well before.
const (
	devOfferLife  = 10 * time.Minute
	devOfferRenew = time.Minute
)

// devDiscovery is the discovery server of a dev run: its files under <dir>/discovery, and the sample offers it is to serve.
type devDiscovery struct {
	listener net.Listener
	files    discoveryFiles
	client   client.Options // for the worker, and for the offers
	samples  []discovery.Spec
	log      *slog.Logger
}

// newDevDiscovery writes a certificate and a token, both new at each start, and so must come after the listener: another
// run in the same directory would be left without.
func newDevDiscovery(dir string, listener net.Listener, log *slog.Logger) (*devDiscovery, error) {
	parsed, err := discovery.Parse(examples.Offers)
	if err != nil {
		return nil, fmt.Errorf("sample offers: %w", err)
	}
	host, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return nil, fmt.Errorf("--discovery-listen: %w", err)
	}
	if net.ParseIP(host).IsUnspecified() {
		host = "127.0.0.1"
	}
	dir = filepath.Join(dir, "discovery")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory of the discovery server: %w", err)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	d := &devDiscovery{
		listener: listener,
		files:    discoveryFiles{cert: in("tls.crt"), key: in("tls.key"), writers: in("writers.yaml"), database: in("offers.db")},
		client: client.Options{
			URL: "https://" + net.JoinHostPort(host, port), CAFile: in("ca.crt"), TokenFile: in("token"),
			SecretNamespaces: secretNamespaces(parsed.Offers),
		},
		samples: parsed.Offers,
		log:     log,
	}
	if err := devCertificate(d.client.CAFile, d.files.cert, d.files.key, host, "127.0.0.1", "::1", "localhost"); err != nil {
		return nil, err
	}
	return d, d.writeToken()
}

func (d *devDiscovery) writeToken() error {
	var random [32]byte
	if _, err := rand.Read(random[:]); err != nil {
		return fmt.Errorf("make token: %w", err)
	}
	token := hex.EncodeToString(random[:])
	hash, err := hashToken(strings.NewReader(token))
	if err != nil {
		return err
	}
	for path, content := range map[string]string{
		d.client.TokenFile: token + "\n",
		d.files.writers:    fmt.Sprintf("writers:\n- name: dev\n  tokenSHA256: %q\n", hash),
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return fmt.Errorf("write token: %w", err)
		}
	}
	return nil
}

// curl is a command that lists the offers.
func (d *devDiscovery) curl() string {
	return fmt.Sprintf(`curl --cacert %s -H "Authorization: Bearer $(cat %s)" %s`, d.client.CAFile, d.client.TokenFile, d.client.URL+api.PathOffers)
}

// serve runs the server until ctx ends.
func (d *devDiscovery) serve(ctx context.Context) error {
	site, err := d.files.open(ctx, d.log)
	if err != nil {
		return err
	}
	return errors.Join(site.serve(ctx, d.listener), site.Close())
}

// lend puts the sample offers, waiting a little for the server, and calls lent; then it puts them again and again until ctx
// ends.
func (d *devDiscovery) lend(ctx context.Context, lent func()) error {
	c, err := client.New(d.client)
	if err != nil {
		return err
	}
	if err := waitFor(ctx, 20*time.Second, func() error { return d.put(ctx, c) }); err != nil {
		return err
	}
	lent()
	tick := time.NewTicker(devOfferRenew)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := d.put(ctx, c); err != nil && ctx.Err() == nil {
			d.log.Warn("sample offers not renewed; trying again soon", "error", err)
		}
	}
}

func (d *devDiscovery) put(ctx context.Context, c *client.Client) error {
	expires := time.Now().Add(devOfferLife)
	for _, spec := range d.samples {
		spec.Expires = &expires
		if _, err := c.Put(ctx, api.Posted{Spec: spec}); err != nil {
			return err
		}
	}
	return nil
}

// simulate adds the offers' providers to the world. The simulated backend takes a Secret's name for the provider's id.
func (d *devDiscovery) simulate(ctx context.Context, world *sim.World) error {
	for _, spec := range d.samples {
		ref := spec.Credentials.SecretRef
		if ref == nil {
			return fmt.Errorf("sample offer %s: its credentials must be a secretRef", spec.Name)
		}
		if err := world.AddProvider(ctx, ref.Name, nil); err != nil {
			return err
		}
	}
	return nil
}

func secretNamespaces(offers []discovery.Spec) []string {
	var namespaces []string
	for _, spec := range offers {
		if ref := spec.Credentials.SecretRef; ref != nil {
			namespaces = append(namespaces, ref.Namespace)
		}
	}
	return namespaces
}
