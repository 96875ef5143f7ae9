package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/reload"
)

// Serve answers on the listener over HTTPS until ctx ends, then lets requests under way finish for at most 5 s. It
// sweeps expired offers every minute. The listener is closed in any case.
func (s *Server) Serve(ctx context.Context, listener net.Listener, certificates *Certificates) error {
	web := &http.Server{
		Handler:           s,
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificates.get},
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      20 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(s.options.Log.Handler(), slog.LevelDebug),
	}
	ctx, stop := context.WithCancel(ctx)
	var sweeping sync.WaitGroup
	sweeping.Add(1)
	go func() {
		defer sweeping.Done()
		s.sweep(ctx)
	}()
	failed := make(chan error, 1)
	go func() { failed <- web.ServeTLS(listener, "", "") }()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		err = web.Shutdown(grace)
		if late := web.Close(); err == nil {
			err = late
		}
	}
	stop()
	sweeping.Wait()
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve discovery API: %w", err)
	}
	return nil
}

func (s *Server) sweep(ctx context.Context) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			now, err := s.options.Store.Now(ctx)
			n := 0
			if err == nil {
				n, err = s.options.Store.Sweep(ctx, now)
			}
			if err != nil {
				s.options.Log.Error("expired offers cannot be removed", "error", err)
			} else if n > 0 {
				s.options.Log.Info("expired offers removed", "offers", n)
			}
		}
	}
}

// Certificates are a certificate and its key in files that are renewed in place, as cert-manager does.
type Certificates struct {
	files *reload.Files[*tls.Certificate]
	log   *slog.Logger
}

// LoadCertificates reads the files for the first time.
func LoadCertificates(certFile, keyFile string, log *slog.Logger) (*Certificates, error) {
	parse := func(contents [][]byte) (*tls.Certificate, error) {
		pair, err := tls.X509KeyPair(contents[0], contents[1])
		return &pair, err
	}
	files, err := reload.Open(parse, certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("load server certificate: %w", err)
	}
	return &Certificates{files, log}, nil
}

func (c *Certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return c.files.Latest(c.log, "server certificate not renewed, the last good one stays in use"), nil
}
