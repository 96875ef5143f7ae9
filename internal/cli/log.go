package cli

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// Log holds the flags of the log.
type Log struct{ Level, Format string }

// Register adds the log flags to a command and its subcommands.
func (l *Log) Register(cmd *cobra.Command) {
	f := cmd.PersistentFlags()
	f.StringVar(&l.Level, "log-level", "info", "minimum level that is logged: debug, info, warn, error")
	Values(cmd, "log-level", "debug", "info", "warn", "error")
	f.StringVar(&l.Format, "log-format", "", "text or json (default: text on a terminal, json elsewhere)")
	Values(cmd, "log-format", "text", "json")
}

// Logger creates the logger of the process and sets it as slog.Default(). Libraries that use a global logger then use
// this logger, too.
func (l *Log) Logger(out io.Writer) (*slog.Logger, error) {
	handler, err := l.Handler(out)
	if err != nil {
		return nil, err
	}
	logger := slog.New(handler)
	slog.SetLogLoggerLevel(slog.LevelWarn) // net/http logs its warnings with package log
	slog.SetDefault(logger)
	return logger, nil
}

// Handler returns a handler that writes to out with the level and format of the flags.
func (l *Log) Handler(out io.Writer) (slog.Handler, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.Level)); err != nil {
		return nil, fmt.Errorf("--log-level %q: use debug, info, warn or error", l.Level)
	}
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: cleaned}
	switch format := l.Format; {
	case format == "json", format == "" && !IsTerminal(out):
		options.ReplaceAttr = func(groups []string, a slog.Attr) slog.Attr {
			return DurationsInSeconds(groups, cleaned(groups, a))
		}
		return slog.NewJSONHandler(out, options), nil
	case format == "text", format == "":
		return slog.NewTextHandler(out, options), nil
	default:
		return nil, fmt.Errorf("--log-format %q: use text or json", format)
	}
}

// cleaned removes control characters and tokens from the texts and errors in an attribute, because other parties have
// written some of these texts.
func cleaned(_ []string, a slog.Attr) slog.Attr {
	switch text := a.Value.Any().(type) {
	case string:
		a.Value = slog.StringValue(shorten.Lines(text))
	case error:
		a.Value = slog.StringValue(shorten.Lines(text.Error()))
	}
	return a
}

// DurationsInSeconds replaces a duration by its number of seconds, because the JSON handler would write nanoseconds.
// It can be used as slog.HandlerOptions.ReplaceAttr.
func DurationsInSeconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.Float64Value(a.Value.Duration().Seconds())
	}
	return a
}

// IsTerminal reports whether out is a terminal.
func IsTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
