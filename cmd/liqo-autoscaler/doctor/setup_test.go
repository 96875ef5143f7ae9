package doctor_test

import (
	"crypto/x509"
	"errors"
	"slices"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/doctor"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/template"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// setup describes an installation that the chart has made. A test changes it before the doctor examines it.
type setup struct {
	in                             doctor.Installation
	server, worker, autoscaler     *appsv1.Deployment
	liqo, cloudCA                  *appsv1.Deployment // cloudCA is another Cluster Autoscaler
	more                           []runtime.Object
	serverTLS, clientTLS, caConfig *corev1.Secret
	namespace                      *corev1.Namespace
	node                           *corev1.Node
	kubernetes                     string
	apis                           []string
	forbidden                      map[string]bool // the forbidden resources
	provider                       *fake.Clientset
	serverNames                    []string
	clientNames                    []string
	serverLasts, clientLasts       time.Duration
	otherAuthority                 bool
	caLoop                         time.Duration                // end of Cluster Autoscaler's last loop, minus now
	policed                        []string                     // kinds for which a policy restricts the worker's account
	enforced                       admissionv1.ValidationAction // validationActions of the policies' binding
	consumer                       string                       // a consumer that has an account here and no policies
}

func deployment(name, image string, args ...string) *appsv1.Deployment {
	one := int32(1)
	volume := func(name, secret string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: secret}}}
	}
	tls := map[bool]string{true: "client-tls", false: "server-tls"}[name == "cluster-autoscaler"]
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "la", Name: name},
		Spec: appsv1.DeploymentSpec{Replicas: &one, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			ServiceAccountName: name, Volumes: []corev1.Volume{volume("tls", tls), volume("config", "cloud-config")},
			Containers: []corev1.Container{{Name: "main", Image: image, Args: args, VolumeMounts: []corev1.VolumeMount{
				{Name: "tls", MountPath: "/tls"}, {Name: "config", MountPath: "/config/"}}}},
		}}},
		Status: appsv1.DeploymentStatus{ReadyReplicas: 1},
	}
}

// bundle moves the server and the worker into one StatefulSet, as temporal.bundled does. s.more then contains the
// StatefulSet and its PersistentVolumeClaim.
func (s *setup) bundle() {
	class := "fast"
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "la", Name: "la"},
		Spec: appsv1.StatefulSetSpec{Replicas: s.worker.Spec.Replicas, Template: s.worker.Spec.Template,
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}},
		Status: appsv1.StatefulSetStatus{ReadyReplicas: 1}}
	set.Spec.Template.Spec.Containers = append(set.Spec.Template.Spec.Containers, *main(s.server))
	s.worker, s.server = nil, nil
	s.more = []runtime.Object{set, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "la", Name: "data-la-0"},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class,
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}}
}

func secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "la", Name: name}, Data: map[string][]byte{}}
}

func healthy() *setup {
	spec := fleet.GroupSpec{Max: 5, InstanceSpec: fleet.InstanceSpec{ID: "std", Shape: list("2", "4Gi")}}
	spec.Budgets.Total.Duration = 12 * time.Minute
	group := fleet.Snapshot{Group: "std", Max: 5, Spec: &spec}
	s := &setup{
		server: deployment("server", "la:1", "grpcserver", "--tls-cert=/tls/tls.crt", "--tls-client-ca=/tls/ca.crt",
			"--tls-allowed-names=cluster-autoscaler"),
		worker: deployment("worker", "la:1", "worker"),
		autoscaler: deployment("cluster-autoscaler", "registry.k8s.io/autoscaling/cluster-autoscaler:v1.33.0",
			"--cloud-provider=externalgrpc", "--cloud-config=/config/cloud-config.yaml", "--ok-total-unready-count=1000"),
		liqo:      deployment("liqo-controller-manager", "ghcr.io/liqotech/liqo-controller-manager:v1.2.0"),
		serverTLS: secret("server-tls"), clientTLS: secret("client-tls"), caConfig: secret("cloud-config"),
		namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop",
			Labels: map[string]string{"liqo.io/scheduling-enabled": "true"}}},
		node:       template.Of(spec.InstanceSpec),
		kubernetes: "v1.33.1",
		apis: []string{"core.liqo.io/v1", "authentication.liqo.io/v1", "offloading.liqo.io/v1",
			"networking.liqo.io/v1"},
		forbidden:   map[string]bool{},
		serverNames: []string{"la.la.svc"}, clientNames: []string{"cluster-autoscaler"},
		serverLasts: 90 * day, clientLasts: 90 * day,
		policed: slices.Clone(doctor.PolicedKinds), enforced: admissionv1.Deny,
	}
	s.caConfig.Data["cloud-config.yaml"] = []byte("address: la.la.svc:8086\ncert: /tls/tls.crt\nkey: /tls/tls.key\n")
	s.node.Name, s.node.Spec.ProviderID = "lca-std-a-1-1", "liqo://std/std-a-1"
	s.in = doctor.Installation{
		Now:   time.Now(),
		Flags: func(time.Duration) []doctor.Flag { return []doctor.Flag{{"ok-total-unready-count", "1000", "Why."}} },
		Temporal: &doctor.Temporal{Version: "1.29.1", Polled: true, Queue: "liqo-autoscaler",
			Groups:    []fleet.Snapshot{group},
			Providers: []fleet.ProviderSnapshot{{ID: "milan", Offer: &fleet.Offer{}}}},
		Market: &market.Market{Offers: []market.Offer{{Name: "milan", Provider: "milan", Lendable: list("8", "16Gi"),
			Free: list("8", "16Gi")}}},
		Providers: []doctor.Provider{{Name: "milan.kubeconfig", ConsumerID: "munich"}},
	}
	return s
}

const day = 24 * time.Hour

// examine writes the certificates into the Secrets, and runs the examination.
func (s *setup) examine(t *testing.T) *doctor.Report {
	t.Helper()
	authority := testkit.NewAuthority(t)
	clients := authority
	if s.otherAuthority {
		clients = testkit.NewAuthority(t)
	}
	s.serverTLS.Data["ca.crt"] = authority.PEM()
	if s.serverTLS.Data["tls.crt"] == nil {
		s.serverTLS.Data["tls.crt"] = issue(t, authority, s.serverNames, s.serverLasts)
	}
	s.clientTLS.Data["tls.crt"] = issue(t, clients, s.clientNames, s.clientLasts)
	var objects []runtime.Object
	for _, d := range []*appsv1.Deployment{s.server, s.worker, s.autoscaler, s.liqo, s.cloudCA} {
		if d != nil {
			objects = append(objects, d)
		}
	}
	objects = append(objects, s.more...)
	if s.namespace != nil {
		objects = append(objects, s.namespace)
	}
	objects = append(objects, &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "of-the-worker"},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConditions: []admissionv1.MatchCondition{{Expression: "request.userInfo.username == " +
				"'system:serviceaccount:la:worker'"}},
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{Rule: admissionv1.Rule{Resources: s.policed}}}}},
		}}, &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "of-the-worker"},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: "of-the-worker",
			ValidationActions: []admissionv1.ValidationAction{s.enforced}}})
	if s.consumer != "" {
		objects = append(objects, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-autoscaler",
			Name: "consumer-" + s.consumer}})
	}
	objects = append(objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem,
		Name: "cluster-autoscaler-status", Annotations: map[string]string{"cluster-autoscaler.kubernetes.io/last-updated":
		// the time has Cluster Autoscaler's format
		s.in.Now.Add(s.caLoop).UTC().String()}}})
	s.in.Kube = s.cluster(append(objects, s.serverTLS, s.clientTLS, s.caConfig, s.node)...)
	if s.provider == nil {
		s.provider = s.cluster(healthy().liqo)
	}
	for n := range s.in.Providers {
		s.in.Providers[n].Kube = s.provider
	}
	return doctor.Examine(t.Context(), s.in)
}

func issue(t *testing.T, by *testkit.Certificate, names []string, lasts time.Duration) []byte {
	return by.Issue(t, func(c *x509.Certificate) {
		c.Subject.CommonName, c.DNSNames = names[0], names
		c.NotBefore, c.NotAfter = time.Now().Add(-100*day), time.Now().Add(lasts)
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}).PEM()
}

// cluster returns a cluster that serves these APIs. It allows all requests except those to the forbidden resources.
func (s *setup) cluster(objects ...runtime.Object) *fake.Clientset {
	kube := fake.NewClientset(objects...)
	d := kube.Discovery().(*fakediscovery.FakeDiscovery)
	d.FakedServerVersion = &version.Info{GitVersion: s.kubernetes}
	for _, api := range s.apis {
		kube.Resources = append(kube.Resources, &metav1.APIResourceList{GroupVersion: api})
	}
	kube.PrependReactor("create", "subjectaccessreviews", func(a ktesting.Action) (bool, runtime.Object, error) {
		r := a.(ktesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		r.Status.Allowed = !s.forbidden[r.Spec.ResourceAttributes.Resource]
		return true, r, nil
	})
	kube.PrependReactor("create", "selfsubjectaccessreviews", func(a ktesting.Action) (bool, runtime.Object, error) {
		r := a.(ktesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
		r.Status.Allowed = !s.forbidden["provider/"+r.Spec.ResourceAttributes.Resource]
		return true, r, nil
	})
	return kube
}

// failing returns a cluster whose API server answers each request with an error.
func failing(err error) *fake.Clientset {
	kube := fake.NewClientset()
	kube.PrependReactor("*", "*", func(ktesting.Action) (bool, runtime.Object, error) { return true, nil, err })
	return kube
}

var errAway = errors.New("no route to host")
