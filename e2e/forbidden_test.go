package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
)

// young is the time after the start of an API server in which it may refuse permissions that it grants later. During
// this time the API server answers requests, but has not read its own roles. A step that runs in this time reports
// the refusal once and continues.
const young = 10 * time.Second

func (s *stack) tooYoung(at time.Time) bool {
	return slices.ContainsFunc(s.restarted, func(since time.Time) bool {
		return at.After(since) && at.Before(since.Add(young))
	})
}

// ofTheMoment is a part of the error of a step whose budget ended while the consumer still refused a permission.
// mayBeRefused accepts this refusal.
const ofTheMoment = "list kubeconfigs of "

// nothingForbidden requires that no log of our processes and no audit log of an API server contains a refused
// permission, except the refusals that mayBeRefused accepts.
func (s *stack) nothingForbidden() {
	logs := slices.Concat(s.logs["worker"], s.logs["grpcserver"])
	require.GreaterOrEqual(s.t, len(logs), 2)
	for _, path := range logs {
		log, err := os.ReadFile(path)
		require.NoError(s.t, err)
		require.NotEmpty(s.t, log)
		lines := slices.DeleteFunc(slices.Collect(bytes.Lines(log)), func(line []byte) bool {
			return !bytes.Contains(bytes.ToLower(line), []byte("forbidden")) || bytes.Contains(line, []byte(ofTheMoment)) ||
				s.tooYoung(written(line))
		})
		if len(lines) > 0 {
			s.t.Errorf("%s: %d lines name a permission that the process lacks, the first: %s", path, len(lines), lines[0])
		}
	}
	for _, cluster := range append([]string{lab.Consumer}, s.lab.Providers...) {
		asked, refused := s.audited(cluster)
		assert.NotEmpty(s.t, asked, "%s received requests of our account", cluster)
		s.t.Logf("%s received the requests %s", cluster, strings.Join(asked, ", "))
		assert.Empty(s.t, refused, "%s has refused our account", cluster)
	}
}

// written returns the time in a line of a log, or zero when the line contains none.
func written(line []byte) time.Time {
	var entry struct {
		Time time.Time `json:"time"`
	}
	_ = json.Unmarshal(line, &entry)
	return entry.Time
}

// refusedNote is the ConfigMap in a tenant namespace that records that its provider has removed our Tenant.
const refusedNote = "liqo-autoscaler-refused"

// mayBeRefused reports whether a refusal is expected. Every provider must refuse one request: an account for one
// tenant namespace may not list namespaces. The consumer may refuse two kinds of requests. First, the permissions
// that our account gives itself in a tenant namespace take effect a moment later and end with the namespace. Second,
// in a foreign namespace our account reads the ConfigMap refusedNote before it has any permission, and treats the
// refusal like a missing ConfigMap.
func mayBeRefused(cluster string, r lab.Request) bool {
	if cluster != lab.Consumer {
		return r.Kind() == "list /namespaces"
	}
	return strings.HasPrefix(r.ObjectRef.Namespace, "liqo-tenant-") &&
		(r.Kind() == "list /secrets" || r.Kind() == "get /configmaps" && r.ObjectRef.Name == refusedNote)
}

// audited returns the requests that a cluster granted to our account, and the requests that it refused although the
// account needs them. It lists each request once.
func (s *stack) audited(cluster string) (given, refused []string) {
	requests, err := s.lab.Audited(cluster)
	require.NoError(s.t, err)
	for _, r := range requests {
		switch {
		case r.ObjectRef.Name == probe: // the suite itself
		case r.Allowed():
			given = append(given, r.Kind())
		case !s.tooYoung(r.At) && !mayBeRefused(cluster, r):
			refused = append(refused, fmt.Sprintf("%s in %q, %q", r.Kind(), r.ObjectRef.Namespace, r.ObjectRef.Name))
		}
	}
	slices.Sort(given)
	slices.Sort(refused)
	return slices.Compact(given), slices.Compact(refused)
}
