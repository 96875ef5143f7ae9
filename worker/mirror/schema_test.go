package mirror_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"
)

// definition holds the fields of a CustomResourceDefinition that the tests use.
type definition struct {
	Metadata struct{ Name string }
	Spec     struct {
		Group, Scope string
		Names        struct {
			Kind, Plural string
			ShortNames   []string
			Categories   []string
		}
		Versions []struct {
			Name                     string
			Served, Storage          bool
			Subresources             struct{ Status *struct{} }
			AdditionalPrinterColumns []struct{ Name, Type, JSONPath, Description string }
			Schema                   struct {
				OpenAPIV3Schema *spec.Schema
			}
		}
	}
}

// definitionOf reads the definition of a resource from its file in the chart.
func definitionOf(t *testing.T, resource string) definition {
	t.Helper()
	raw, err := os.ReadFile("../../deploy/helm/liqo-autoscaler/crds/" + resource + ".yaml")
	require.NoError(t, err)
	raw, err = yaml.YAMLToJSONStrict(raw)
	require.NoError(t, err)
	var d definition
	require.NoError(t, json.Unmarshal(raw, &d))
	require.Len(t, d.Spec.Versions, 1)
	return d
}

// valid checks that an object obeys the schema of its CRD, so that the API server would drop no field.
func valid(t *testing.T, resource string, u *unstructured.Unstructured) {
	t.Helper()
	schema := definitionOf(t, resource).Spec.Versions[0].Schema.OpenAPIV3Schema
	raw, err := json.Marshal(u.Object)
	require.NoError(t, err)
	var object map[string]any
	require.NoError(t, json.Unmarshal(raw, &object))
	result := validate.NewSchemaValidator(schema, nil, "", strfmt.Default).Validate(object)
	require.Empty(t, result.Errors, "%s", raw)
	known(t, resource, schema, object)
}

// known checks that the schema has every field of the object. It skips the metadata.
func known(t *testing.T, path string, schema *spec.Schema, value any) {
	t.Helper()
	switch value := value.(type) {
	case map[string]any:
		for key, of := range value {
			property, has := schema.Properties[key]
			require.True(t, has, "the schema lacks %s.%s", path, key)
			if key != "metadata" {
				known(t, path+"."+key, &property, of)
			}
		}
	case []any:
		for _, of := range value {
			known(t, path+"[]", schema.Items.Schema, of)
		}
	}
}
