package doctor_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/doctor"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

func list(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory),
		"pods": resource.MustParse("110")}
}

func main(d *appsv1.Deployment) *corev1.Container { return &d.Spec.Template.Spec.Containers[0] }

// broken contains a set-up for each finding. The set-up has only the fault that causes the finding. The last field is
// a part of the finding's text.
var broken = map[doctor.ID]struct {
	breaks func(*setup)
	says   string
}{
	"kubernetes-old":      {func(s *setup) { s.kubernetes = "v1.26.3"; s.provider = healthy().cluster() }, "1.26.3"},
	"kubernetes-policies": {func(s *setup) { s.kubernetes = "v1.29.0-eks-1" }, "1.29.0"},
	"clock-skew":          {func(s *setup) { s.in.Skew = -time.Minute }, "differ by 1m0s"},
	"liqo-missing":        {func(s *setup) { s.provider = s.cluster(); s.apis = s.apis[:1] }, "authentication.liqo.io"},
	"liqo-networking":     {func(s *setup) { s.apis = s.apis[:3] }, "requires a network"},
	"not-offloaded":       {func(s *setup) { s.namespace.Labels = nil }, "no namespace is offloaded"},

	"tenant-namespace-mapped": {func(s *setup) {
		s.namespace.Name = "liqo-tenant-turin"
		s.namespace.Labels["liqo.io/remote-cluster-id"] = "munich"
		s.namespace.Annotations = map[string]string{"liqo.io/managed-by-namespace-map": "liqo-tenant-munich/munich"}
	}, "for the NamespaceMap liqo-tenant-munich/munich, so cluster munich can read"},

	"consumer-policies": {func(s *setup) { s.consumer = "rome" }, "liqo-autoscaler-consumer-rome-secrets, "},

	"server-missing":   {func(s *setup) { s.server = nil }, "liqo-autoscaler grpcserver"},
	"server-not-ready": {func(s *setup) { s.server.Status.ReadyReplicas = 0 }, "none of 1"},
	"worker-missing":   {func(s *setup) { s.worker = nil }, "liqo-autoscaler worker"},
	"worker-not-ready": {func(s *setup) { s.worker.Status.ReadyReplicas = 0 }, "none of 1"},
	"claim-pending": {func(s *setup) {
		s.bundle()
		s.more[1].(*corev1.PersistentVolumeClaim).Status.Phase = corev1.ClaimPending
	}, "it has no volume yet (storage class fast, [ReadWriteOncePod]), so the pod of StatefulSet la does not start"},
	"versions-differ": {func(s *setup) { main(s.worker).Image = "la:2" }, "it runs la:2, but the server runs la:1"},
	"worker-rights": {func(s *setup) { s.forbidden["virtualnodes"] = true },
		"create virtualnodes, delete virtualnodes"},

	"worker-policies": {func(s *setup) { s.policed = s.policed[:5] },
		"writes of its account to virtualnodes, identities, renews"},

	"autoscaler-missing":   {func(s *setup) { s.autoscaler = nil }, "externalgrpc"},
	"autoscaler-old":       {func(s *setup) { main(s.autoscaler).Image = "ca:v1.29.4@sha256:0" }, "1.29.4"},
	"autoscaler-not-ready": {func(s *setup) { s.autoscaler.Status.ReadyReplicas = 0 }, "none of 1"},
	"autoscaler-hasty": {func(s *setup) {
		main(s.autoscaler).Args = append(main(s.autoscaler).Args,
			"--max-node-provision-time=5m")
	}, "gives up on a node after 5m0s, and nodes of std may take 12m0s"},
	"autoscaler-flag": {func(s *setup) { main(s.autoscaler).Args = main(s.autoscaler).Args[:2] },
		"--ok-total-unready-count=1000 is not set. Why."},
	"autoscaler-config": {func(s *setup) { s.caConfig.Data["cloud-config.yaml"] = []byte("address: la.la.svc") },
		"it has no cert"},

	"autoscaler-silent": {func(s *setup) { s.caLoop = -10 * time.Minute },
		"the last successful loop of Cluster Autoscaler was 10m0s ago"},
	"autoscaler-refuses-ids": {func(s *setup) {
		s.cloudCA = deployment("cloud-ca", "cluster-autoscaler:v1.32.1", "--cloud-provider=aws")
	}, "its provider aws returns an error for the providerID of a virtual node"},
	"autoscaler-stops-with-us": {func(s *setup) {
		s.cloudCA = deployment("cloud-ca", "cluster-autoscaler:v1.33.0", "--cloud-provider=aws")
		s.more = nodesOf(3, "aws:///eu-west-1a/i-", nil)
		s.more = append(s.more, nodesOf(3, "", s.node.Labels)...)
	}, "4 of 7 Nodes are virtual"},

	"certificate-unreadable": {func(s *setup) { s.serverTLS.Data["tls.crt"] = []byte("nothing") },
		"contains no certificate"},
	"certificate-ended": {func(s *setup) { s.serverLasts = -day }, "/tls/tls.crt expired on"},
	"certificate-ends":  {func(s *setup) { s.clientLasts = 5 * day }, "/tls/tls.crt expires on"},
	"certificate-name": {func(s *setup) { s.serverNames = []string{"other.svc"} },
		"for other.svc, but Cluster Autoscaler connects to la.la.svc"},
	"client-name": {func(s *setup) { s.clientNames = []string{"somebody"} },
		"accepts the names cluster-autoscaler, but"},
	"client-authority": {func(s *setup) { s.otherAuthority = true }, "unknown authority"},

	"temporal-unreachable": {func(s *setup) { s.in.Temporal = &doctor.Temporal{Err: errAway} }, "no route to host"},
	"temporal-stuck": {func(s *setup) { s.in.Temporal = &doctor.Temporal{Err: errAway, Stuck: true} },
		"no route to host"},
	"temporal-old":        {func(s *setup) { s.in.Temporal.Version = "1.24.2" }, "1.24.2"},
	"temporal-attributes": {func(s *setup) { s.in.Temporal.Missing = []string{"LiqoGroup"} }, "LiqoGroup"},
	"temporal-no-worker":  {func(s *setup) { s.in.Temporal.Polled = false }, "no worker polls it"},

	"volumes-keep-node": {func(s *setup) {
		s.in.Market.Findings.Kept = []market.KeptNode{{Provider: "milan", Group: "std", Node: "lca-std-a-1-1", Claims: 2,
			Claim: "shop/data-0"}}
	}, "node lca-std-a-1-1 of node group std is kept, and costs money, because of the volumes of 2 claims, such as " +
		"shop/data-0"},
	"pods-rejected": {func(s *setup) {
		s.more = append(s.more, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "agent"},
			Status: corev1.PodStatus{Phase: corev1.PodPending, Reason: "OffloadingBackOff"}})
	}, "1 in namespace kube-system"},
	"pods-overdue": {func(s *setup) {
		s.in.Market.Findings.Pods = []market.PodsWaiting{{Provider: "milan", Group: "std", Verdict: "NotStarting", Count: 3,
			Overdue: 2, Pod: "shop/web", Why: "ImagePullBackOff"}}
	}, "NotStarting: 2 pods of node group std have not run since their budgets.podStart, such as shop/web: " +
		"ImagePullBackOff"},

	"no-groups":            {func(s *setup) { s.in.Temporal.Groups = nil }, "no node group runs"},
	"group-not-configured": {func(s *setup) { s.in.Temporal.Groups[0].Spec = nil }, "has no spec"},
	"group-condition": {func(s *setup) { s.in.Temporal.Groups[0].Condition = "many drivers fail" },
		"many drivers fail"},
	"group-stuck": {func(s *setup) {
		s.in.Temporal.Groups[0].Instances = []fleet.InstanceView{{Name: "std-a-1",
			Phase: fleet.Draining, Stuck: "cancelled"}}
	}, "instance std-a-1 is stuck in phase Draining: cancelled"},
	"group-paused": {func(s *setup) { s.in.Temporal.Groups[0].Paused = true }, "paused"},
	"group-change-not-in-force": {func(s *setup) {
		s.in.Temporal.Groups[0].Notice = fleet.GroupNotice{Name: fleet.BlockChangeNotInForce, Message: "shape changed, but"}
	}, "shape changed, but"},
	"group-retired": {func(s *setup) {
		s.in.Temporal.Groups[0].Notice = fleet.GroupNotice{Name: fleet.BlockRetired, Message: "it only shrinks"}
	}, "it only shrinks"},
	"group-spending-limit": {func(s *setup) {
		limit := 0.4
		s.in.Temporal.Groups[0].Spec.Spending = &money.Spending{Hourly: money.SpendingLimit{Hard: &limit}}
		s.in.Market.Offers[0].Price = 0.5
	}, "spending.hourly.hard is 0.4"},
	"group-without-offer": {func(s *setup) {
		s.in.Market.Offers[0].Lendable = list("1", "16Gi")
		s.in.Market.Offers[0].Free = list("1", "16Gi")
	}, "milan: "},
	"no-market": {func(s *setup) { s.in.Market, s.in.MarketNote = nil, "nobody has published it" },
		"nobody has published it"},
	"observer-stopped": {func(s *setup) {
		s.in.Market.Findings.Observer = &market.Rounds{Complete: s.in.Now.Add(-6 * time.Minute), Failed: "list objects: no"}
	}, "the last complete round was 6m0s ago: list objects: no"},
	"worker-clock": {func(s *setup) {
		s.in.Market.Findings.Observer = &market.Rounds{Complete: s.in.Now,
			ClockAhead: map[string]int64{"api-server": 10, "temporal": -11}}
	}, "its clock is 11s behind the clock of temporal"},
	"observer-paused": {func(s *setup) {
		s.in.Market.Findings.Observer = &market.Rounds{Complete: s.in.Now, Paused: true}
	}, "an operator has paused it"},
	"no-offers": {func(s *setup) { s.in.Market = &market.Market{} }, "no provider offers capacity"},
	"provider-condition": {func(s *setup) {
		s.in.Temporal.Providers[0].Refusing = &fleet.ProviderRefusal{
			Reason: "closed"}
	},
		"it refuses this cluster: closed"},
	"node-differs": {func(s *setup) { s.node.Status.Allocatable["cpu"] = resource.MustParse("1") },
		"cpu is 1 instead of 2"},

	"hub-without-worker": {func(s *setup) { s.node.Annotations = map[string]string{"liqo-autoscaler.io/hub": "edge"} },
		"1 virtual nodes belong to it"},

	"provider-unreachable": {func(s *setup) { s.provider = failing(errAway) }, "no route to host"},
	"provider-refuses": {func(s *setup) { s.provider = failing(apierrors.NewUnauthorized("expired")) },
		"expired"},
	"provider-credentials-end": {func(s *setup) { s.in.Providers[0].Life.End = s.in.Now.Add(day) },
		"the credentials expire on"},
	"provider-liqo-missing": {func(s *setup) { bare := healthy(); bare.apis = nil; s.provider = bare.cluster(bare.liqo) },
		"authentication.liqo.io"},
	"provider-liqo-version": {func(s *setup) {
		s.provider = s.cluster(deployment("liqo-controller-manager", "ghcr.io/liqotech/liqo-controller-manager:v1.1.2"))
	}, "different minor versions"},
	"provider-liqo-untested": {func(s *setup) {
		s.liqo.Spec.Template.Spec.Containers[0].Image = "ghcr.io/liqotech/liqo-controller-manager:9a8b7c6"
	}, "is unknown for one cluster or both"},
	"provider-rights": {func(s *setup) { s.forbidden["provider/tenants"] = true },
		"in namespace liqo-tenant-munich the account may not create tenants"},
	"provider-kubernetes-too-old": {func(s *setup) {
		old := healthy()
		old.kubernetes = "v1.25.0"
		s.provider = old.cluster(old.liqo)
	}, "1.25.0"},
}

// The doctor reports each fault as the only finding. For an installation without a fault it reports nothing.
func TestEachFaultIsTheOnlyFinding(t *testing.T) {
	r := healthy().examine(t)
	require.Empty(t, r.Findings)
	require.Empty(t, r.NotExamined)
	require.False(t, r.Failed())
	require.NotEmpty(t, r.Examined)
	for _, id := range doctor.Known() {
		t.Run(string(id), func(t *testing.T) {
			b, ok := broken[id]
			require.True(t, ok, "no set-up is broken so")
			s := healthy()
			b.breaks(s)
			r := s.examine(t)
			require.Len(t, r.Findings, 1, "%v", r.Findings)
			require.Equal(t, id, r.Findings[0].ID)
			require.Contains(t, r.Findings[0].Message, b.says)
			require.NotEmpty(t, r.Findings[0].Where)
			require.NotEmpty(t, r.Findings[0].Remedy)
			require.Equal(t, r.Findings[0].Severity == doctor.Error, r.Failed())
			var out bytes.Buffer
			require.NoError(t, r.Text(&out))
			require.Regexp(t, `\[`+string(id)+`\]\n    do: .+\n    see: https://github\.com/.+/docs/doctor\.md#`+string(id)+"\n",
				out.String())
		})
	}
}

// CA waits for a node for a shorter time than a group may need. doctor reports this for each version. From 1.36 on,
// it adds that CA then requests nodes again and again. A version that it does not know may be 1.36 or later.
func TestShortProvisionTimeDependsOnCAsVersion(t *testing.T) {
	for image, endless := range map[string]bool{"ca:v1.33.0": false, "ca:v1.35.2": false, "ca:v1.36.0": true,
		"ca:v1.37.1@sha256:0": true, "ca:mine": true} {
		s := healthy()
		main(s.autoscaler).Image = image
		main(s.autoscaler).Args = append(main(s.autoscaler).Args, "--max-node-provision-time=12m")
		r := s.examine(t)
		require.Len(t, r.Findings, 1, image)
		require.Equal(t, doctor.ID("autoscaler-hasty"), r.Findings[0].ID)
		require.Equal(t, endless, strings.Contains(r.Findings[0].Message, "again and again, without backing off"),
			"%s: %s", image, r.Findings[0].Message)

		main(s.autoscaler).Args = append(main(s.autoscaler).Args[:len(main(s.autoscaler).Args)-1],
			"--max-node-provision-time=13m")
		require.Empty(t, s.examine(t).Findings, image)
	}
}

// Several unusual set-ups cause no findings: flags in both spellings, a Kubernetes version that is not a release, and
// credentials of a provider that do not contain the consumer's id.
func TestUnusualSetupCausesNoFinding(t *testing.T) {
	s := healthy()
	main(s.autoscaler).Command = []string{"./cluster-autoscaler", "--cloud-provider", "externalgrpc", "--v"}
	main(s.autoscaler).Args = []string{"--cloud-config", "/config/cloud-config.yaml", "--ok-total-unready-count=1000"}
	s.kubernetes, s.in.Providers[0].ConsumerID = "unknown", ""
	s.node.Spec.ProviderID, s.node.Status.Allocatable = "std/x", nil // this Node does not belong to a group of ours
	s.forbidden["provider/tenants"] = true
	r := s.examine(t)
	require.Empty(t, r.Findings)
	require.Len(t, r.NotExamined, 2)
}

// nodesOf returns n Nodes with these labels. If id is not "", each providerID consists of id and a number.
func nodesOf(n int, id string, labels map[string]string) (nodes []runtime.Object) {
	for i := range n {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%d-%.3s", i, id), Labels: labels}}
		if id != "" {
			node.Spec.ProviderID = fmt.Sprint(id, i)
		}
		nodes = append(nodes, node)
	}
	return nodes
}

// TestOtherAutoscalersAreRecognized examines clusters in which another cloud's Cluster Autoscaler runs. Some clouds
// refuse our Nodes in every version, some accept them since a certain version, and some run their Cluster Autoscaler
// outside the cluster.
func TestOtherAutoscalersAreRecognized(t *testing.T) {
	for name, tc := range map[string]struct {
		image, provider, id string
		finds               []string
	}{
		"aws 1.33":      {"x/cluster-autoscaler:v1.33.0", "aws", "aws:///a/i-", nil},
		"aws 1.32":      {"x/cluster-autoscaler:v1.32.7", "aws", "aws:///a/i-", []string{"la/cloud-ca"}},
		"aws, no tag":   {"x/cluster-autoscaler", "aws", "", []string{"la/cloud-ca"}},
		"azure":         {"x/cluster-autoscaler:v1.30.0", "azure", "azure:///subscriptions/", nil},
		"linode":        {"x/cluster-autoscaler:v1.36.1", "linode", "linode://", []string{"la/cloud-ca"}},
		"no autoscaler": {"x/cloud-controller-manager:v1.30.0", "alicloud", "", nil},
		"linode hidden": {"", "", "linode://", []string{"Nodes of linode"}},
		"gce hidden":    {"", "", "gce://p/z/n", nil},
	} {
		s := healthy()
		if s.more = nodesOf(10, tc.id, nil); tc.provider != "" {
			s.cloudCA = deployment("cloud-ca", tc.image, "--cloud-provider="+tc.provider)
		}
		r := s.examine(t)
		require.Len(t, r.Findings, len(tc.finds), "%s: %v", name, r.Findings)
		for n, where := range tc.finds {
			require.Equal(t, doctor.ID("autoscaler-refuses-ids"), r.Findings[n].ID, name)
			require.Contains(t, r.Findings[n].Where, where, name)
		}
	}
}

// Every finding that the code reports has an entry in kinds with a severity and a remedy.
func TestEveryFindingIsKnown(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	reported := map[doctor.ID]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`r\.(?:add|ready)\((?:p, )?"([a-z-]+)"`).FindAllStringSubmatch(string(text), -1) {
			reported[doctor.ID(m[1])] = true
		}
	}
	require.ElementsMatch(t, doctor.Known(), slices.Collect(maps.Keys(reported)))
}

// docs/doctor.md has a section for each finding.
func TestFindingsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/doctor.md")
	require.NoError(t, err)
	for _, id := range doctor.Known() {
		require.Contains(t, string(text), "\n### "+string(id)+"\n")
	}
}

// TestBundledIsHealthy examines an installation whose server and worker run in one StatefulSet.
func TestBundledIsHealthy(t *testing.T) {
	s := healthy()
	s.bundle()
	r := s.examine(t)
	require.Empty(t, r.Findings)
	require.Contains(t, r.Examined, "StatefulSet la/la: 1 of 1 pods ready")
	require.Contains(t, r.Examined, "PersistentVolumeClaim la/data-la-0: Bound")

	s = healthy()
	s.bundle()
	s.more[0].(*appsv1.StatefulSet).Status.ReadyReplicas = 0
	ids := map[doctor.ID]string{}
	for _, f := range s.examine(t).Findings {
		ids[f.ID] = f.Where
	}
	const where = "StatefulSet la/la"
	require.Equal(t, map[doctor.ID]string{"server-not-ready": where, "worker-not-ready": where}, ids)
}

// doctor may not read an object. The report names this object, but has no finding about it.
func TestForbiddenReadCausesNoFinding(t *testing.T) {
	s := healthy()
	s.in.Providers = nil
	s.examine(t)
	s.in.Kube = failing(apierrors.NewForbidden(corev1.Resource("any"), "", errAway))
	r := doctor.Examine(t.Context(), s.in)
	require.Empty(t, r.Findings)
	require.Len(t, r.NotExamined, 6)
	require.Contains(t, r.NotExamined[2], "Deployments: ")
}

// A policy that only warns or audits counts as missing.
func TestWarningPolicyCountsAsMissing(t *testing.T) {
	s := healthy()
	s.enforced = admissionv1.Warn
	report := s.examine(t)
	require.Len(t, report.Findings, 1)
	require.Equal(t, doctor.ID("worker-policies"), report.Findings[0].ID)
}
