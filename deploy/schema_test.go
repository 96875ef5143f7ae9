package deploy_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/config"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

type schema struct {
	Ref                  string             `json:"$ref"`
	Type                 any                `json:"type"` // a string or a list of strings
	Properties           map[string]*schema `json:"properties"`
	AdditionalProperties json.RawMessage    `json:"additionalProperties"`
	Items                *schema            `json:"items"`
	Definitions          map[string]*schema `json:"definitions"`
}

func readSchema(t *testing.T) *schema {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(chart, "values.schema.json"))
	require.NoError(t, err)
	var s schema
	require.NoError(t, json.Unmarshal(raw, &s))
	return &s
}

// Every object whose keys are fixed refuses other keys. values.yaml and the schema have the same keys.
func TestSchemaRefusesUnknownKeys(t *testing.T) {
	root := readSchema(t)
	var walk func(path string, s *schema)
	walk = func(path string, s *schema) {
		if s.Properties != nil {
			require.Equal(t, "false", string(s.AdditionalProperties), "%s refuses unknown keys", path)
		}
		for key, next := range s.Properties {
			walk(path+"."+key, next)
		}
		if s.Items != nil {
			walk(path+"[]", s.Items)
		}
	}
	walk("", root)
	for name, s := range root.Definitions {
		walk(name, s)
	}

	raw, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	require.NoError(t, err)
	var values map[string]any
	require.NoError(t, yaml.Unmarshal(raw, &values))
	var compare func(path string, values any, s *schema)
	compare = func(path string, values any, s *schema) {
		if name, ok := strings.CutPrefix(s.Ref, "#/definitions/"); ok {
			s = root.Definitions[name]
		}
		given, ok := values.(map[string]any)
		if !ok || s.Properties == nil || len(given) == 0 { // the values may omit the whole object
			return
		}
		// helm itself adds the key global
		want := slices.DeleteFunc(slices.Sorted(maps.Keys(s.Properties)), func(key string) bool { return key == "global" })
		require.Equal(t, want, slices.Sorted(maps.Keys(given)), "keys of values.yaml at %s", path)
		for key := range given {
			compare(path+"."+key, given[key], s.Properties[key])
		}
	}
	compare("", values, root)
}

// For node groups and offers, the schema has the same keys as the code.
func TestSchemaHasTheKeysOfTheCode(t *testing.T) {
	root := readSchema(t)
	for name, of := range map[string]reflect.Type{
		"nodeGroup": reflect.TypeFor[config.NodeGroup](), "offer": reflect.TypeFor[discovery.Spec](),
		"secretRef": reflect.TypeFor[discovery.SecretRefSpec](), "selector": reflect.TypeFor[metav1.LabelSelector](),
	} {
		require.Equal(t, keysOf(of), slices.Sorted(maps.Keys(root.Definitions[name].Properties)), name)
	}
	require.Equal(t, keysOf(reflect.TypeFor[config.Defaults]()),
		slices.Sorted(maps.Keys(root.Definitions["nodeGroupDefaults"].Properties)))
	require.Equal(t, keysOf(reflect.TypeFor[grpcserver.Limits]()),
		slices.Sorted(maps.Keys(root.Properties["limits"].Properties)))
	require.Equal(t, []string{"defaults", "hub", "limits", "nodeGroups"}, keysOf(reflect.TypeFor[config.Config]()),
		"the chart writes all of the file")
	require.Equal(t, keysOf(reflect.TypeFor[fleet.Budgets]()),
		slices.Sorted(maps.Keys(root.Definitions["nodeGroup"].Properties["budgets"].Properties)))
	require.Equal(t, keysOf(reflect.TypeFor[discovery.CredentialsSpec]()),
		slices.Sorted(maps.Keys(root.Definitions["offer"].Properties["credentials"].Properties)))
	taint := slices.DeleteFunc(keysOf(reflect.TypeFor[corev1.Taint]()),
		func(key string) bool { return key == "timeAdded" })
	require.Equal(t, taint, slices.Sorted(maps.Keys(root.Definitions["taint"].Properties)))
}

// TestChartAcceptsTheKeysOfTheConfig compares the chart's schema with the generated schema of the config file. Both
// have the same keys at every depth, for node groups, their defaults and the limits.
func TestChartAcceptsTheKeysOfTheConfig(t *testing.T) {
	root := readSchema(t)
	raw, err := os.ReadFile("../grpcserver/config/schema.json")
	require.NoError(t, err)
	var generated schema
	require.NoError(t, json.Unmarshal(raw, &generated))
	var compare func(path string, code, chart *schema)
	compare = func(path string, code, chart *schema) {
		if name, ok := strings.CutPrefix(chart.Ref, "#/definitions/"); ok {
			chart = root.Definitions[name]
		}
		if code.Items != nil {
			require.NotNil(t, chart.Items, path)
			compare(path+"[]", code.Items, chart.Items)
		}
		if code.Properties == nil {
			return
		}
		require.Equal(t, slices.Sorted(maps.Keys(code.Properties)), slices.Sorted(maps.Keys(chart.Properties)), path)
		for key, of := range code.Properties {
			compare(path+"."+key, of, chart.Properties[key])
		}
	}
	for key, value := range map[string]string{"nodeGroups": "nodeGroups", "defaults": "nodeGroupDefaults",
		"limits": "limits"} {
		require.NotNil(t, generated.Properties[key], key)
		compare(value, generated.Properties[key], root.Properties[value])
	}
}

func keysOf(of reflect.Type) (keys []string) {
	for _, field := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if embedded := field.Anonymous && name == ""; !embedded && name != "-" {
			keys = append(keys, name)
		}
	}
	slices.Sort(keys)
	return keys
}

// The chart refuses values with which an installation cannot work. The error contains the reason.
func TestImpossibleValuesAreRefused(t *testing.T) {
	for _, test := range []struct{ set, change, says string }{
		{"plaintext", "worker.replicas=3", "Additional property replicas is not allowed"},
		{"plaintext", "typo=1", "Additional property typo is not allowed"},
		{"plaintext", "nodeGroups[0].maxSize=3", "Additional property maxSize is not allowed"},
		{"plaintext", "nodeGroups[0].shape=null", "nodeGroups.0.shape"},
		{"plaintext", "nodeGroups[1].id=small", "nodeGroups[1].max is missing, and nodeGroupDefaults has none"},
		{"plaintext", "nodeGroups[0].min=5", "nodeGroups[0].min is 5, above max, which is 4"},
		{"plaintext", "nodeGroupDefaults.min=5", "nodeGroups[0].min is 5, above max, which is 4"},
		{"plaintext", "limits.nodes=0", "limits.nodes"},
		{"plaintext", "limits.pods=7", "Additional property pods is not allowed"},
		{"plaintext", "nodeGroupDefaults.id=x", "Additional property id is not allowed"},
		{"plaintext", "nodeGroups[0].id=Big_One", "nodeGroups.0.id"},
		{"plaintext", "offers[0].lendable.cpu=lots", "offers.0.lendable.cpu"},
		{"plaintext", "offers[0].credentials.kubeconfigFile=x", "Must have at most 1 properties"},
		{"plaintext", "offers[0].credentials=null", "offers.0.credentials"},
		{"plaintext", "temporal.address=temporal", "temporal.address"},
		{"plaintext", "temporal.address=http://temporal:7233", "temporal.address"},
		{"plaintext", "temporal.tls.caSecret=x", "Additional property caSecret is not allowed"},
		{"plaintext", "temporal.setup.retention=week", "temporal.setup.retention"},
		{"plaintext", "nodeGroups=null", "nodeGroups is required"},
		{"plaintext", "hub=East", "hub"},
		{"plaintext", "tls.plaintext=false", "set exactly one of existingSecret, certManager.enabled and plaintext"},
		{"plaintext", "tls.existingSecret=x", "set exactly one of existingSecret, certManager.enabled and plaintext"},
		{"plaintext", "tls.allowedNames={x}", "tls.allowedNames needs TLS"},
		{"certmanager", "tls.allowedNames={x}", "leaves out cluster-autoscaler"},
		{"certmanager", "metrics.enabled=false", "metrics.serviceMonitor needs metrics.enabled"},
		{"plaintext", "offers=null", "no source of offers"},
		{"plaintext", "offerServer.enabled=true", "offerServer.token.secretName"},
		{"plaintext", "offerServer.enabled=true,offerServer.token.secretName=x", "offerServer.url"},
		{"plaintext", "discovery.enabled=true", "discovery.writers.secretName"},
		{"plaintext", "discovery.enabled=true,discovery.writers.secretName=x", "discovery.tls"},
		{"plaintext", "discovery.enabled=true,discovery.writers.secretName=x,discovery.tls.certManager=true",
			"needs tls.certManager.enabled"},
		{"existing", "discovery.postgres.secretName=", "discovery.postgres.secretName"},
		{"existing", "discovery.store=mysql", "discovery.store"},
		{"certmanager", "discovery.replicaCount=2", "a SQLite file has one server"},
		{"certmanager", "clusterAutoscaler.namespace=kube-system", "must be a ClusterIssuer"},
		{"existing", "offerServer.url=http://offers.example.com", "offerServer.url"},
	} {
		t.Run(test.change, func(t *testing.T) {
			out, err := template(t, "--values", valuesFile(test.set), "--set", test.change)
			require.Error(t, err, "%s", out)
			require.Contains(t, string(out), test.says)
		})
	}
	out, err := template(t)
	require.Error(t, err)
	for _, missing := range []string{"nodeGroups", "temporal.address"} {
		require.Contains(t, string(out), missing, fmt.Sprintf("without values, the error names %s", missing))
	}
}
