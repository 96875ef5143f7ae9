package pair

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/liqo-autoscaler/liqo-autoscaler/deploy/provider"
)

// kinds are the kinds of objects in the provider's manifest.
var kinds = map[string]schema.GroupVersionResource{
	"Namespace":          {Version: "v1", Resource: "namespaces"},
	"ServiceAccount":     {Version: "v1", Resource: "serviceaccounts"},
	"Role":               {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
	"RoleBinding":        {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
	"ClusterRole":        {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	"ClusterRoleBinding": {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
	"ValidatingAdmissionPolicy": {Group: "admissionregistration.k8s.io", Version: "v1",
		Resource: "validatingadmissionpolicies"},
	"ValidatingAdmissionPolicyBinding": {Group: "admissionregistration.k8s.io", Version: "v1",
		Resource: "validatingadmissionpolicybindings"},
}

// wanted is an object of the manifest, together with the object of the same name that exists in the cluster.
type wanted struct {
	*unstructured.Unstructured
	client dynamic.ResourceInterface
	live   *unstructured.Unstructured // the existing object, or nil
	differ string                     // path of the first difference between the two objects
}

// name returns the kind and the name of the object for messages.
func (w wanted) name() string {
	if w.GetNamespace() == "" {
		return w.GetKind() + " " + w.GetName()
	}
	return w.GetKind() + " " + w.GetNamespace() + "/" + w.GetName()
}

// shared reports whether the object is the namespace of the accounts, which all consumers share.
func (w wanted) shared() bool { return w.GetKind() == "Namespace" && w.GetName() == provider.Namespace }

// hasMark reports whether the existing object has the label of setup for this consumer (labelSetup).
func (w wanted) hasMark(consumer string) bool {
	return w.live != nil && w.live.GetLabels()[labelSetup] == consumer
}

// parse parses the objects of a manifest.
func parse(manifest string, objects dynamic.Interface) (all []wanted, err error) {
	for _, part := range strings.Split(manifest, "\n---\n") {
		w := wanted{Unstructured: &unstructured.Unstructured{}}
		if err := yaml.Unmarshal([]byte(part), &w.Object); err != nil {
			return nil, fmt.Errorf("read the provider's manifest: %w", err)
		}
		if len(w.Object) == 0 {
			continue
		}
		resource, ok := kinds[w.GetKind()]
		if !ok {
			return nil, fmt.Errorf("the provider's manifest has the kind %q, which setup does not support", w.GetKind())
		}
		w.client = objects.Resource(resource)
		if w.GetNamespace() != "" {
			w.client = objects.Resource(resource).Namespace(w.GetNamespace())
		}
		all = append(all, w)
	}
	return all, nil
}

// read reads the existing object of each element.
func read(ctx context.Context, all []wanted) error {
	for i := range all {
		live, err := all[i].client.Get(ctx, all[i].GetName(), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("read %s: %w", all[i].name(), err)
		default:
			all[i].live = live
		}
	}
	return nil
}

// compare reads the existing objects and compares them with the manifest. It returns an error if an existing object
// differs and does not have labelSetup, because setup must not change such an object.
func compare(ctx context.Context, all []wanted, consumer string) error {
	if err := read(ctx, all); err != nil {
		return err
	}
	for i := range all {
		w := &all[i]
		if w.live == nil || w.shared() {
			continue
		}
		w.differ = strings.TrimPrefix(differs(w.live.Object, w.Object, ""), ".")
		if w.differ != "" && !w.hasMark(consumer) {
			return fmt.Errorf("%s exists without the label %s=%s, but its %s differs from the manifest: setup does not change "+
				"it. Set the label to let setup change it, or apply the output of liqo-autoscaler provider-access "+
				"--consumer-id %s yourself", w.name(), labelSetup, consumer, w.differ, consumer)
		}
	}
	return nil
}
