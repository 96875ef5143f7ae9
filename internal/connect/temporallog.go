package connect

import (
	"context"
	"log/slog"
	"slices"

	sdklog "go.temporal.io/sdk/log"
)

// temporalLog implements the SDK's logger. It replaces the SDK's keys by our keys. The SDK adds six keys to every
// line. Some other keys of the SDK have the same name as one of our keys, but another meaning. temporalLog writes all
// these keys only if debug is enabled, in a separate group.
type temporalLog struct {
	log   *slog.Logger
	noise []any // pairs that are written only if debug is enabled
}

var (
	_ sdklog.Logger     = temporalLog{}
	_ sdklog.WithLogger = temporalLog{}
)

// temporalWords contains, for each key of the SDK that is always written, our key (SDK
// internal/internal_logging_tags.go).
var temporalWords = map[string]string{
	"WorkflowID":   "workflow_id",
	"ActivityType": "step",
	"WorkerType":   "worker_type",
	"UpdateName":   "update",
	"Error":        "error",
	"PanicError":   "panic",
	"PanicStack":   "stack",
	"StackTrace":   "stack",
}

// temporalNoise contains the SDK's keys that are written only if debug is enabled. Most of these keys have the same
// value on all lines of a process, or their value follows from the workflow id. The key Attempt could be confused
// with an instance's attempt.
var temporalNoise = map[string]bool{
	"Namespace": true, "TaskQueue": true, "WorkerID": true, "BuildID": true, "RunID": true, "WorkflowType": true,
	"ActivityID": true, "ActivityRunID": true, "Attempt": true, "UpdateID": true,
}

// translate divides the SDK's key-value pairs into two groups. facts are always written, with our keys. noise is
// written only if debug is enabled.
func translate(keyvals []any) (facts, noise []any) {
	for i := 0; i+1 < len(keyvals); i += 2 {
		key, _ := keyvals[i].(string)
		switch word := temporalWords[key]; {
		case temporalNoise[key]:
			noise = append(noise, key, keyvals[i+1])
		case word != "":
			facts = append(facts, word, keyvals[i+1])
		default:
			facts = append(facts, keyvals[i], keyvals[i+1])
		}
	}
	if len(keyvals)%2 == 1 {
		facts = append(facts, keyvals[len(keyvals)-1]) // slog marks it as a value that has no key
	}
	return facts, noise
}

func (l temporalLog) write(level slog.Level, msg string, keyvals []any) {
	ctx := context.Background()
	if !l.log.Enabled(ctx, level) {
		return
	}
	facts, noise := translate(keyvals)
	if noise = slices.Concat(l.noise, noise); len(noise) > 0 && l.log.Enabled(ctx, slog.LevelDebug) {
		facts = append(facts, slog.Group("temporal", noise...))
	}
	l.log.Log(ctx, level, msg, facts...)
}

// Debug implements log.Logger.
func (l temporalLog) Debug(msg string, keyvals ...any) { l.write(slog.LevelDebug, msg, keyvals) }

// Info implements log.Logger.
func (l temporalLog) Info(msg string, keyvals ...any) { l.write(slog.LevelInfo, msg, keyvals) }

// Warn implements log.Logger.
func (l temporalLog) Warn(msg string, keyvals ...any) { l.write(slog.LevelWarn, msg, keyvals) }

// Error implements log.Logger.
func (l temporalLog) Error(msg string, keyvals ...any) { l.write(slog.LevelError, msg, keyvals) }

// With implements log.WithLogger.
func (l temporalLog) With(keyvals ...any) sdklog.Logger {
	facts, noise := translate(keyvals)
	return temporalLog{log: l.log.With(facts...), noise: slices.Concat(l.noise, noise)}
}
