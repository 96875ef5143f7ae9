package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/server"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/postgres"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/sqlite"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/sqlstore"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/registry"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// discoveryFiles holds the paths of the discovery server's files.
type discoveryFiles struct {
	cert, key, clientCA, writers, store, dsn string
	rate                                     float64
}

// NewDiscovery returns the command discovery.
func NewDiscovery(c *connect.Common) *cobra.Command {
	var files discoveryFiles
	var listen string
	var observe serve.ObserveFlags
	cmd := &cobra.Command{
		Use:   "discovery",
		Short: "Serve the discovery API, where providers publish offers and workers list them",
		Long: `Serve the discovery API over HTTPS: providers publish offers, and workers list them. /v1/openapi.yaml on the server
describes the API. The certificate, the clients' authorities and the writers file are read again when they change.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger, err := c.Logger(os.Stderr)
			if err != nil {
				return err
			}
			seen, err := observe.Open(logger)
			if err != nil {
				return err
			}
			defer seen.Close()
			site, err := files.open(cmd.Context(), logger, seen.Registry)
			if err != nil {
				return err
			}
			seen.ReadyWhen("offers", site.api.Ready) // ready while the store responds
			seen.ObserveCertificate(files.cert)
			listener, err := net.Listen("tcp", listen)
			if err != nil {
				return errors.Join(fmt.Errorf("listen for the discovery API: %w", err), site.Close())
			}
			g, ctx := errgroup.WithContext(cmd.Context())
			g.Go(func() error { return seen.Serve(ctx) })
			g.Go(func() error { return site.serve(ctx, listener) })
			return errors.Join(g.Wait(), site.Close())
		},
	}
	cmd.Flags().StringVar(&listen, "listen", ":9010", "address to serve on")
	observe.Register(cmd, "")
	cmd.Flags().StringVar(&files.cert, "tls-cert", "", "PEM file with the server's certificate and its chain (required)")
	cmd.Flags().StringVar(&files.key, "tls-key", "", "PEM file with the key of that certificate (required)")
	cmd.Flags().StringVar(&files.clientCA, "tls-client-ca", "",
		"PEM file with the authorities that may sign clients' certificates (default: clients have only tokens)")
	cmd.Flags().StringVar(&files.writers, "writers", "",
		"YAML file with the accepted clients and their token hashes or certificate URIs (required)")
	cmd.Flags().StringVar(&files.store, "store", "",
		"where offers are stored: sqlite:FILE (created when missing), or postgres for several servers (required)")
	cmd.Flags().StringVar(&files.dsn, "postgres-dsn-file", "",
		"file with PostgreSQL's connection string (default: libpq's variables, such as PGHOST and PGPASSWORD)")
	cmd.Flags().Float64Var(&files.rate, "rate", 50,
		"maximum requests per second for each token, and for each address that sends no token; a burst may have ten "+
			"times as many requests; 0 for no limit")
	for _, name := range []string{"tls-cert", "tls-key", "writers", "store"} {
		_ = cmd.MarkFlagRequired(name)
	}
	cmd.AddCommand(newHashToken())
	return cmd
}

// discoverySite is a discovery server whose files are open.
type discoverySite struct {
	api          *server.Server
	certificates *server.Certificates
	writers      *server.WritersFile
	offers       *sqlstore.Store
	log          *slog.Logger
}

// open reads all files for the first time. It returns an error if a file is not valid. The caller must close the
// returned site.
func (f discoveryFiles) open(ctx context.Context, log *slog.Logger, metrics prometheus.Registerer) (
	*discoverySite, error) {
	s := &discoverySite{log: log}
	var err error
	if s.certificates, err = server.LoadCertificates(f.cert, f.key, log); err != nil {
		return nil, err
	}
	if s.writers, err = server.OpenWriters(f.writers); err != nil {
		return nil, err
	}
	var authorities *server.Authorities
	if f.clientCA != "" {
		if authorities, err = server.LoadAuthorities(f.clientCA, log); err != nil {
			return nil, err
		}
	}
	if s.offers, err = f.openStore(ctx); err != nil {
		return nil, err
	}
	s.api, err = server.New(server.Options{Store: s.offers, Writers: s.writers, ClientAuthorities: authorities,
		Rate: f.rate, Log: log, Registry: metrics, Namespace: registry.Namespace})
	if err != nil {
		return nil, errors.Join(err, s.offers.Close())
	}
	return s, nil
}

func (f discoveryFiles) openStore(ctx context.Context) (*sqlstore.Store, error) {
	path, isFile := strings.CutPrefix(f.store, "sqlite:")
	switch {
	case isFile && path != "" && f.dsn == "":
		return sqlite.Open(ctx, path)
	case f.store == "postgres":
		return postgres.Open(ctx, f.dsn)
	case isFile && path != "":
		return nil, errors.New("--postgres-dsn-file needs --store postgres")
	}
	return nil, fmt.Errorf("--store is %q: give sqlite:FILE or postgres", f.store)
}

// Close closes the database.
func (s *discoverySite) Close() error { return s.offers.Close() }

// serve serves on the listener until ctx ends. It then lets running requests finish and closes the listener.
func (s *discoverySite) serve(ctx context.Context, listener net.Listener) error {
	s.log.Info("serving the discovery API", "address", listener.Addr().String())
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.api.Serve(ctx, listener, s.certificates) })
	g.Go(func() error {
		s.watchWriters(ctx, 10*time.Second)
		return nil
	})
	return g.Wait()
}

// watchWriters logs a new fault of the writers file, because the server refuses all clients while the file has a
// fault. It also logs when the fault is repaired.
func (s *discoverySite) watchWriters(ctx context.Context, every time.Duration) {
	said := ""
	for wait.For(ctx, every) {
		switch err := s.writers.Err(); {
		case err != nil && err.Error() != said:
			said = err.Error()
			s.log.Error("the writers file has errors: the server refuses all requests until it is repaired", "error", err)
		case err == nil && said != "":
			said = ""
			s.log.Info("the writers file is valid again")
		}
	}
}

func newHashToken() *cobra.Command {
	return &cobra.Command{
		Use:     "hash-token",
		Short:   "Read a token from the standard input and print its hash for the writers file",
		Example: "  openssl rand -hex 32 > token\n  liqo-autoscaler discovery hash-token < token",
		Args:    cobra.NoArgs,
		PreRun:  cli.EndAtOnce,
		RunE: func(cmd *cobra.Command, _ []string) error {
			hash, err := hashToken(cmd.InOrStdin())
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), hash)
			return nil
		},
	}
}

// These constants limit the length of a token, in characters. The minimum is needed because a hash without salt
// protects only long random tokens.
const (
	minToken = 32
	maxToken = 4 << 10
)

// hashToken reads a token, removes surrounding space, and returns the tokenSHA256 of the token. Its errors do not
// contain the token.
func hashToken(in io.Reader) (string, error) {
	raw, err := io.ReadAll(io.LimitReader(in, maxToken+2)) // the end of the line is included
	token := strings.TrimSpace(string(raw))
	switch {
	case err != nil:
		return "", fmt.Errorf("read token: %w", err)
	case token == "":
		return "", errors.New("read token: the standard input is empty; create a token with: openssl rand -hex 32")
	case strings.ContainsAny(token, " \t\r\n"):
		return "", errors.New("read token: it has spaces or more than one line; give the token alone")
	case len(token) < minToken:
		return "", fmt.Errorf("read token: it has %d characters and can be guessed; use %d random ones or more, such as: "+
			"openssl rand -hex 32", len(token), minToken)
	case len(token) > maxToken:
		return "", fmt.Errorf("read token: it has more than %d characters", maxToken)
	}
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:]), nil
}
