package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/explain"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"
)

// These constants limit the size of a file and its number of objects.
const (
	maxBytes   = 1 << 20
	maxObjects = 200
)

// File returns the pods that the manifests in a file describe.
func File(path string) ([]explain.Planned, error) {
	f, err := os.Open(path) //nolint:gosec // the user names the file
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxBytes {
		return nil, fmt.Errorf("%s: it is larger than 1 MiB: keep only the objects whose pods you want to explain", path)
	}
	planned, err := Read(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return planned, nil
}

// Read returns the pods of all documents in the text, in the order of the documents. It returns no pod for a
// PodTemplate that another object in the text uses.
func Read(text []byte) ([]explain.Planned, error) {
	all, err := objects(text)
	if err != nil {
		return nil, err
	}
	of, used := make([][]explain.Planned, len(all)), map[key]bool{}
	for n, o := range all {
		if of[n], err = o.pods(all, used); err != nil {
			return nil, fmt.Errorf("%s: %w", o.key, err)
		}
	}
	var planned []explain.Planned
	for n, o := range all {
		if !used[o.key] {
			planned = append(planned, of[n]...)
		}
	}
	return planned, nil
}

// objects decodes each document, and each item of a List.
func objects(text []byte) (all []object, err error) {
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for n := 1; ; n++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		tree, faults, err := strictyaml.Read(document)
		if err = errors.Join(err, faults.Err()); err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		if tree == nil {
			continue // only comments
		}
		if all, err = decode(all, tree); err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("it contains no object: want one of %s", kinds())
	}
	return all, nil
}

// decode appends the object that the tree describes to the list `all`. If the object is a List, decode appends its
// items.
func decode(all []object, tree map[string]any) ([]object, error) {
	version, _ := tree["apiVersion"].(string)
	kind, _ := tree["kind"].(string)
	if kind == "List" && version == "v1" {
		items, _ := tree["items"].([]any)
		for n, item := range items {
			var err error
			if one, _ := item.(map[string]any); one["kind"] == "List" {
				err = errors.New("a List in a List: write the objects as separate documents")
			} else {
				all, err = decode(all, one)
			}
			if err != nil {
				return nil, fmt.Errorf("items[%d]: %w", n, err)
			}
		}
		return all, nil
	}
	empty := known[version+" "+kind]
	if empty == nil {
		return nil, fmt.Errorf("kind %q of apiVersion %q is not supported: want one of %s", kind, version, kinds())
	}
	if len(all) == maxObjects {
		return nil, fmt.Errorf("it has more than %d objects: use several files", maxObjects)
	}
	delete(tree, "status") // it is not used, and may have fields of a later Kubernetes
	o := object{is: empty()}
	if faults := strictyaml.Decode(tree, o.is); faults != nil {
		return nil, fmt.Errorf("%s %s: %w", kind, name(o.is), faults)
	}
	o.key = keyOf(kind, o.is)
	return append(all, o), nil
}

// kinds lists the supported kinds for a message.
func kinds() string {
	var all []string
	for name := range maps.Keys(known) {
		all = append(all, name[strings.IndexByte(name, ' ')+1:])
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}

// known contains a function for each supported kind, which returns an empty object. The key consists of apiVersion
// and kind.
var known = map[string]func() metav1.Object{
	"v1 Pod":                   func() metav1.Object { return &corev1.Pod{} },
	"v1 PodTemplate":           func() metav1.Object { return &corev1.PodTemplate{} },
	"v1 ReplicationController": func() metav1.Object { return &corev1.ReplicationController{} },
	"apps/v1 DaemonSet":        func() metav1.Object { return &appsv1.DaemonSet{} },
	"apps/v1 Deployment":       func() metav1.Object { return &appsv1.Deployment{} },
	"apps/v1 ReplicaSet":       func() metav1.Object { return &appsv1.ReplicaSet{} },
	"apps/v1 StatefulSet":      func() metav1.Object { return &appsv1.StatefulSet{} },
	"batch/v1 CronJob":         func() metav1.Object { return &batchv1.CronJob{} },
	"batch/v1 Job":             func() metav1.Object { return &batchv1.Job{} },
	"autoscaling.x-k8s.io/v1 ProvisioningRequest":      func() metav1.Object { return &provisioningRequest{} },
	"autoscaling.x-k8s.io/v1beta1 ProvisioningRequest": func() metav1.Object { return &provisioningRequest{} },
	"autoscaling.x-k8s.io/v1alpha1 CapacityBuffer":     func() metav1.Object { return &capacityBuffer{} },
	"autoscaling.x-k8s.io/v1beta1 CapacityBuffer":      func() metav1.Object { return &capacityBuffer{} },
}

// pods returns the pods of the object. If the object refers to PodTemplates of the file, pods marks them as used.
func (o object) pods(all []object, used map[key]bool) ([]explain.Planned, error) {
	switch is := o.is.(type) {
	case *provisioningRequest:
		return is.pods(o.key, all, used)
	case *capacityBuffer:
		return is.pods(o.key, all, used)
	}
	way := explain.Created
	if o.kind == kindPodTemplate {
		way = explain.InMemory
	}
	planned, err := o.planned(o.key.String(), way)
	return []explain.Planned{planned}, err
}
