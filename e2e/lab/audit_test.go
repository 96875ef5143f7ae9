package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// event returns an audit event of Kubernetes 1.33 about a request, with only the fields that the lab reads. granted is
// the text after "RBAC: allowed by ".
func event(verb, object, granted string) string {
	decision, reason := "forbid", ""
	if granted != "" {
		decision, reason = "allow", "RBAC: allowed by "+granted
	}
	return fmt.Sprintf(`{"verb":%q,"objectRef":%s,"annotations":{"authorization.k8s.io/decision":%q,`+
		`"authorization.k8s.io/reason":%q}}`+"\n", verb, object, decision, reason)
}

func TestRightsAreRecorded(t *testing.T) {
	l := &Lab{Root: t.TempDir(), Providers: []string{"a", "b"}}
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(l.Root, name), []byte(text), 0o600))
	}
	audited := `{"verb":"get","annotations":{"authorization.k8s.io/decision":"allow"}}` + "\n" +
		event("list", `{"resource":"configmaps","namespace":"liqo"}`,
			`RoleBinding "worker/liqo" of Role "worker" to ServiceAccount "worker/ours"`) +
		event("create", `{"resource":"secrets","namespace":"liqo-tenant-a"}`,
			`RoleBinding "tenant.ours.worker/liqo-tenant-a" of ClusterRole "tenant" to ServiceAccount "worker/ours"`) +
		event("create", `{"resource":"pods","subresource":"eviction","namespace":"a","name":"p"}`,
			`ClusterRoleBinding "worker" of ClusterRole "worker" to ServiceAccount "worker/ours"`) +
		event("create", `{"apiGroup":"authorization.k8s.io","resource":"selfsubjectreviews"}`,
			`ClusterRoleBinding "system:basic-user" of ClusterRole "system:basic-user" to Group "system:authenticated"`) +
		event("delete", `{"resource":"pods","namespace":"a"}`, "") +
		`{"verb":"de`
	write("consumer-audit.log", audited)
	write("a-audit.log", "")
	write("b-audit-2026-11-23T04-50-21.000.log", audited) // a full, rotated log
	requests, err := l.Audited(Consumer)
	require.NoError(t, err)
	var kinds []string
	for _, r := range requests {
		kinds = append(kinds, r.Kind())
	}
	require.Equal(t, []string{"list /configmaps", "create /secrets", "create /pods/eviction",
		"create authorization.k8s.io/selfsubjectreviews", "delete /pods"}, kinds)
	require.False(t, requests[4].Allowed())

	require.NoError(t, l.recordRights(), "without the variable nothing is recorded")
	record := filepath.Join(t.TempDir(), "rights")
	t.Setenv(EnvRights, record)
	require.NoError(t, os.WriteFile(record, []byte("ClusterRole worker list /pods\nRole of/before get /secrets\n"), 0o600))
	for range 2 {
		require.NoError(t, l.recordRights())
		text, err := os.ReadFile(record)
		require.NoError(t, err)
		require.Equal(t, "ClusterRole tenant create /secrets\nClusterRole worker create /pods/eviction\n"+
			"ClusterRole worker list /pods\nRole liqo/worker list /configmaps\nRole of/before get /secrets\n", string(text))
	}
}
