package pair

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/secrets"
)

// stored is the Secret with the offer in the consumer cluster.
type stored struct {
	kube            kubernetes.Interface
	namespace, name string
	provider        string         // the value of labelSetup
	live            *corev1.Secret // the existing Secret, or nil
}

// String returns the Secret's name for messages.
func (s *stored) String() string { return "Secret " + s.namespace + "/" + s.name }

// read reads the existing Secret. It returns an error if setup must not change this Secret, or if another Secret has
// an offer of the same provider.
func (s *stored) read(ctx context.Context) error {
	live, err := s.kube.CoreV1().Secrets(s.namespace).Get(ctx, s.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("read %s: %w", s, err)
	case live.Labels[labelSetup] == "":
		return fmt.Errorf("%s exists without the label %s: setup does not change it; give the offer another name with --name",
			s, labelSetup)
	case live.Labels[labelSetup] != s.provider:
		return fmt.Errorf("%s is the offer of provider %s: give the offer another name with --name", s,
			live.Labels[labelSetup])
	default:
		s.live = live
	}
	same, err := s.kube.CoreV1().Secrets(s.namespace).List(ctx, metav1.ListOptions{
		LabelSelector: labelSetup + "=" + s.provider})
	if err != nil {
		return fmt.Errorf("list Secrets in namespace %s: %w", s.namespace, err)
	}
	for i := range same.Items {
		if name := same.Items[i].Name; name != s.name {
			return fmt.Errorf("provider %s already has the offer %s, in Secret %s/%s: give --name %s, or remove it with setup "+
				"consumer --undo", s.provider, name, s.namespace, name, name)
		}
	}
	return nil
}

// kubeconfig returns the credentials in the existing Secret, or nil.
func (s *stored) kubeconfig() []byte {
	if s.live == nil {
		return nil
	}
	return s.live.Data[discovery.DefaultKey]
}

// data returns the Secret's data with the given credentials and offer. It keeps those keys of the existing info that
// the offer does not set.
func (s *stored) data(kubeconfig []byte, o offer) (map[string][]byte, error) {
	info := map[string]any{}
	var data map[string][]byte
	if s.live != nil {
		data = maps.Clone(s.live.Data)
		if err := yaml.Unmarshal(data[secrets.KeyInfo], &info); err != nil {
			return nil, fmt.Errorf("%s: its info is not YAML: correct or delete it", s)
		}
	}
	if data == nil {
		data = map[string][]byte{}
	}
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	var added map[string]any
	if err := json.Unmarshal(raw, &added); err != nil {
		return nil, err
	}
	before, err := yaml.Marshal(info)
	if err != nil {
		return nil, err
	}
	maps.Copy(info, added)
	after, err := yaml.Marshal(info)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(before, after) {
		data[secrets.KeyInfo] = after
	}
	data[discovery.DefaultKey] = kubeconfig
	return data, nil
}

// check returns an error if the worker would refuse the data.
func (s *stored) check(data map[string][]byte) error {
	if err := secrets.Check(s.namespace, s.name, data); err != nil {
		return fmt.Errorf("%s would have wrong data:\n%w", s, err)
	}
	return nil
}

// change returns the effect that put would have: created, changed or unchanged.
func (s *stored) change(data map[string][]byte) string {
	switch {
	case s.live == nil:
		return "created"
	case maps.EqualFunc(s.live.Data, data, bytes.Equal) && s.live.Labels["autoscaling"] == "true":
		return "unchanged"
	}
	return "changed"
}

// put creates or changes the Secret. It returns an error if the Secret has changed since the method read has read it.
func (s *stored) put(ctx context.Context, data map[string][]byte) (err error) {
	all := s.kube.CoreV1().Secrets(s.namespace)
	switch s.change(data) {
	case "created":
		labels := map[string]string{labelSetup: s.provider}
		maps.Copy(labels, secrets.Label)
		_, err = all.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: s.name, Labels: labels},
			Type: corev1.SecretTypeOpaque, Data: data}, metav1.CreateOptions{FieldManager: manager})
	case "changed":
		secret := s.live.DeepCopy()
		secret.Data = data
		maps.Copy(secret.Labels, secrets.Label)
		_, err = all.Update(ctx, secret, metav1.UpdateOptions{FieldManager: manager})
	}
	if err != nil {
		return fmt.Errorf("store %s: %w", s, err)
	}
	return nil
}

// ensureNamespace creates the namespace if it is missing. It does not set labelSetup, because the namespace also
// contains the chart's release and must not be removed.
func ensureNamespace(ctx context.Context, kube kubernetes.Interface, name string) error {
	_, err := kube.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
			metav1.CreateOptions{FieldManager: manager})
	}
	if err != nil {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	return nil
}
