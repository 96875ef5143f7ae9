package lab

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// EnvRights is the environment variable with the path of a file. When a lab ends, it adds permissions to this file:
// each permission because of which one of its API servers has admitted a request of our accounts. Each line is one
// Request.Right. The lines are sorted and unique. Default: no file.
const EnvRights = "LIQO_AUTOSCALER_LAB_RIGHTS"

// Request holds some fields of the audit event of one request (audit.k8s.io/v1 Event).
type Request struct {
	Verb        string
	ObjectRef   struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	Annotations map[string]string
	At          time.Time `json:"requestReceivedTimestamp"`
}

// Kind returns the verb, the API group, the resource and the subresource as a text, such as "list /pods" or "create
// /pods/eviction".
func (r Request) Kind() string {
	return strings.TrimSuffix(fmt.Sprintf("%s %s/%s/%s", r.Verb, r.ObjectRef.APIGroup, r.ObjectRef.Resource,
		r.ObjectRef.Subresource), "/")
}

// Allowed reports whether the API server's authorizer admitted the request.
func (r Request) Allowed() bool { return r.Annotations["authorization.k8s.io/decision"] == "allow" }

// by matches the role in the text of the authorizer's reason (Kubernetes pkg/registry/rbac/validation/rule.go).
var by = regexp.MustCompile(` of (ClusterRole|Role) "([^"]+)" to ServiceAccount `)

// Right returns the permission because of which the request was admitted: the role (with its namespace, if it has
// one) and Kind. It returns "" when the role is not bound to a ServiceAccount, because Kubernetes then grants the
// permission to every account.
func (r Request) Right() string {
	role := by.FindStringSubmatch(r.Annotations["authorization.k8s.io/reason"])
	switch {
	case !r.Allowed() || role == nil:
		return ""
	case role[1] == "Role":
		role[2] = r.ObjectRef.Namespace + "/" + role[2]
	}
	return role[1] + " " + role[2] + " " + r.Kind()
}

// Audited returns the requests that ServiceAccounts have sent to a cluster's API server. It omits requests without a
// resource, such as discovery requests.
func (l *Lab) Audited(cluster string) ([]Request, error) {
	logs, err := filepath.Glob(filepath.Join(l.Root, cluster+"-audit*.log")) // includes the rotated log
	if err != nil {
		return nil, fmt.Errorf("read audit log: %w", err)
	}
	var requests []Request
	for _, path := range logs {
		log, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read audit log: %w", err)
		}
		for line := range bytes.Lines(log) {
			var r Request
			if json.Unmarshal(line, &r) == nil && r.ObjectRef.Resource != "" { // the last line may be only partly written
				requests = append(requests, r)
			}
		}
	}
	return requests, nil
}

// recordRights adds the permissions to the file of EnvRights. Only one lab at a time may do this.
func (l *Lab) recordRights() error {
	path := os.Getenv(EnvRights)
	if path == "" {
		return nil
	}
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("record rights: %w", err)
	}
	used := strings.Split(strings.TrimSpace(string(before)), "\n")
	for _, cluster := range append([]string{Consumer}, l.Providers...) {
		requests, err := l.Audited(cluster)
		if err != nil {
			return err
		}
		for _, r := range requests {
			used = append(used, r.Right())
		}
	}
	slices.Sort(used)
	text := strings.TrimSpace(strings.Join(slices.Compact(used), "\n")) + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("record rights: %w", err)
	}
	return nil
}
