package cli

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// init sets the global loggers of klog and controller-runtime before any other code runs. These loggers must not be
// set after a goroutine has logged, because klog's SetLogger is not thread-safe. They forward each line to
// slog.Default(), which may change later.
func init() {
	toDefault := logr.FromSlogHandler(defaultHandler{})
	klog.SetLogger(toDefault)
	ctrllog.SetLogger(toDefault)
}

// defaultHandler is a slog.Handler that forwards each record to the present handler of slog.Default().
type defaultHandler struct{}

func (defaultHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return slog.Default().Handler().Enabled(ctx, level)
}

func (defaultHandler) Handle(ctx context.Context, r slog.Record) error {
	return slog.Default().Handler().Handle(ctx, r)
}

func (defaultHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return slog.Default().Handler().WithAttrs(attrs)
}

func (defaultHandler) WithGroup(name string) slog.Handler {
	return slog.Default().Handler().WithGroup(name)
}
