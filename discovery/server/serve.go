package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connlimit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// maxConnections bounds the connections of all clients together.
const maxConnections = 1000

// Serve serves HTTPS on the listener until ctx ends, and then waits for running requests for at most 5 s. It deletes
// expired offers every minute. When it returns, it has closed the listener.
func (s *Server) Serve(ctx context.Context, listener net.Listener, certificates *Certificates) error {
	web := &http.Server{
		Handler:           s,
		TLSConfig:         s.tls(certificates),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      20 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ConnContext:       connlimit.WithConn,
		ErrorLog:          slog.NewLogLogger(s.options.Log.Handler(), slog.LevelDebug),
	}
	ctx, stop := context.WithCancel(ctx)
	var sweeping sync.WaitGroup
	sweeping.Go(func() { s.sweep(ctx) })
	failed := make(chan error, 1)
	go func() { failed <- web.ServeTLS(connlimit.Listen(listener, maxConnections), "", "") }()
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
	for wait.For(ctx, time.Minute) {
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
