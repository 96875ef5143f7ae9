package deploy_test

import (
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/observer"
)

// right is one verb on one resource in one place.
type right struct {
	// Places in the consumer's cluster are "cluster", "here" (our tenant namespaces), "liqo", "credentials",
	// "offers", "hub", "events" (about Nodes), and "writer" and "reader" (of the market). Places in the provider's
	// cluster are "tenant" (the consumer's tenant namespace), "provider liqo", "itself" (the object of this
	// namespace) and "account" (the namespace of the accounts).
	where    string
	verb     string
	resource string // group/resource; the core group has no name before the slash
	name     string // resourceName; empty: any name
}

func on(where, verb string, resources ...string) (rights []right) {
	for _, resource := range resources {
		rights = append(rights, right{where: where, verb: verb, resource: resource})
	}
	return rights
}

// both returns the rights for a verb in the consumer's cluster and in the tenant namespace of a provider.
func both(verb string, resources ...string) []right {
	return and(on("cluster", verb, resources...), on("tenant", verb, resources...))
}

// named returns a right for the objects with one name.
func named(where, verb, resource, name string) []right {
	return []right{{where: where, verb: verb, resource: resource, name: name}}
}

func and(sets ...[]right) (rights []right) {
	for _, set := range sets {
		rights = append(rights, set...)
	}
	return rights
}

// These constants are short names of resources.
const (
	slice   = "authentication.liqo.io/resourceslices"
	ident   = "authentication.liqo.io/identities"
	renew   = "authentication.liqo.io/renews"
	tenant  = "authentication.liqo.io/tenants"
	virtual = "offloading.liqo.io/virtualnodes"
	nsMap   = "offloading.liqo.io/namespacemaps"
	foreign = "core.liqo.io/foreignclusters"

	conf       = "networking.liqo.io/configurations"
	gwServer   = "networking.liqo.io/gatewayservers"
	gwClient   = "networking.liqo.io/gatewayclients"
	gwKey      = "networking.liqo.io/publickeies" // Liqo spells it in this way
	connection = "networking.liqo.io/connections"
	addresses  = "ipam.liqo.io/networks"

	kubeletOptions = "offloading.liqo.io/vkoptionstemplates"
	networkless    = "liqo-autoscaler-no-network" // activities/backend/liqo/kubeletoptions.go

	// tenantRole is the role of the release "lender", see nameOf.
	tenantRole  = "lender-worker-tenant"
	signedNonce = "liqo-signed-nonce"       // activities/backend/liqo/nonce.go
	refusedNote = "liqo-autoscaler-refused" // activities/backend/liqo/refusal.go
)

// needsOfMarket contains the rights for the ConfigMap of the market. The worker writes the ConfigMap, and the gRPC
// server reads it.
var needsOfMarket = map[string][]right{
	"configmap.go Load c.Client.CoreV1().ConfigMaps(c.Namespace).Get": {
		{where: "reader", verb: "get", resource: "/configmaps", name: marketName},
	},
	"configmap.go Save maps.Create": on("writer", "create", "/configmaps"),
	"configmap.go Save maps.Update": {
		{where: "writer", verb: "update", resource: "/configmaps", name: marketName},
	},
}

// These constants are the resources of the mirror.
const (
	mirrorGroups = "liqo-autoscaler.io/liqonodegroups"
	mirrorOffers = "liqo-autoscaler.io/liqooffers"
)

// needsOfMirror contains the rights for the mirror's objects, which show groups and offers in `kubectl get`.
var needsOfMirror = map[string][]right{
	"objects.go List objects.List":     on("writer", "list", mirrorGroups, mirrorOffers),
	"objects.go Apply objects.Create":  on("writer", "create", mirrorGroups, mirrorOffers),
	"objects.go Apply objects.Update":  on("writer", "update", mirrorGroups+"/status", mirrorOffers+"/status"),
	"objects.go Delete objects.Delete": on("writer", "delete", mirrorGroups, mirrorOffers),
	"mirror.go write w.objects.Delete": nil, // calls the method of the interface; the row of that method has the right
}

// needsOfLease contains the rights that client-go's package leaderelection uses.
var needsOfLease = map[string][]right{"leaderelection": {
	{where: "hub", verb: "create", resource: "coordination.k8s.io/leases"},
	{where: "hub", verb: "get", resource: "coordination.k8s.io/leases", name: hubName},
	{where: "hub", verb: "update", resource: "coordination.k8s.io/leases", name: hubName},
}}

// hubName is the name of the Lease and of a ConfigMap of the default hub. costsName is the name of the ConfigMap with
// the hub's bills.
var hubName, costsName = observer.Name("default"), observer.CostsName("default")

// needsOfHub contains the rights for the ConfigMaps in which the observer stores its state and the bills, and the
// groups store their positions.
var needsOfHub = map[string][]right{
	"configmap.go Read c.Client.CoreV1().ConfigMaps(Namespace).Get": {
		{where: "hub", verb: "get", resource: "/configmaps", name: hubName},
		{where: "hub", verb: "get", resource: "/configmaps", name: costsName},
	},
	"configmap.go edit maps.Get": {
		{where: "hub", verb: "get", resource: "/configmaps", name: hubName},
		{where: "hub", verb: "get", resource: "/configmaps", name: costsName},
	},
	"configmap.go edit maps.Create": on("hub", "create", "/configmaps"),
	"configmap.go edit maps.Update": {
		{where: "hub", verb: "update", resource: "/configmaps", name: hubName},
		{where: "hub", verb: "update", resource: "/configmaps", name: costsName},
	},
	"round.go round o.Backend.List": nil, // calls List of the backend, and not of a client
}

// needsOfEvents contains the rights that client-go's recorder of Events uses for worker/events.
var needsOfEvents = map[string][]right{
	"about a node":     on("events", "create", "/events"),
	"about the market": and(on("writer", "create", "/events"), on("writer", "patch", "/events")),
}

// needsOfRenewal contains the rights that `liqo-autoscaler provider-access renew` uses.
var needsOfRenewal = map[string][]right{"renewal": {
	{where: "account", verb: "create", resource: "/serviceaccounts/token", name: "consumer-munich"},
}}

const marketName = "liqo-autoscaler-market-default"

// needs contains the rights for each place in activities/backend/liqo that uses a client. A row is nil in two cases.
// The place is in a wrapper, and the callers of the wrapper have their own rows. Or the use needs no right, as a
// comment above the row explains.
var needs = map[string][]right{
	// This is a wrapper. Its callers have their own rows.
	"answers.go rejectForeignAnswers c.Create": nil,
	"answers.go rejectForeignAnswers c.Delete": nil,
	"answers.go rejectForeignAnswers c.Get":    nil,
	"answers.go rejectForeignAnswers c.List":   nil,
	"answers.go rejectForeignAnswers c.Patch":  nil,
	// This request only finds out whether the API server answers, so a refusal is sufficient.
	"answers.go answered cluster.Get": nil,

	"attempt.go node a.local.Get":         on("cluster", "get", "/nodes"),
	"attempt.go slice a.local.List":       on("cluster", "list", slice),
	"attempt.go unmark MergePatch":        on("cluster", "patch", virtual),
	"attempt.go virtualNode a.local.List": on("cluster", "list", virtual),

	"callback.go requestRegistration MergePatch": on("cluster", "patch", virtual),

	"credentials.go secretConfig b.local.Get": on("credentials", "get", "/secrets"),

	"divided.go divided p.local.List": on("cluster", "list", virtual, "offloading.liqo.io/namespaceoffloadings"),

	"drain.go unlabelEndedPods MergePatch": on("cluster", "patch", "/pods"),

	"events.go lastWarning provider.List": on("tenant", "list", "/events"),

	// The worker first searches in Liqo's namespace. It searches other namespaces only if the object is missing
	// there.
	"identify.go identify cluster.List": and(on("liqo", "list", "/configmaps"), on("provider liqo", "list",
		"/configmaps")),

	"identity.go ensureIdentity p.local.Create":  on("cluster", "create", ident),
	"identity.go ensureIdentity patchIfChanged":  on("cluster", "patch", ident),
	"identity.go patchIfChanged cluster.Patch":   nil,
	"inuse.go inUse p.local.List":                on("cluster", "list", slice, virtual, tenant),
	"identify.go clusterUID cluster.List":        on("cluster", "list", "/namespaces"),
	"inuse.go inUseRemotely DeleteThis":          on("tenant", "delete", slice),
	"inuse.go inUseRemotely provider.List":       on("tenant", "list", slice),
	"inventory.go find b.local.List":             on("cluster", "list", slice, virtual, "/nodes"),
	"inventory.go findCredentials b.local.List":  on("cluster", "list", ident),
	"inventory.go Peers b.local.List":            on("cluster", "list", "/namespaces", ident),
	"inventory.go addRecordedPeers b.local.List": on("here", "list", "/secrets"),
	"published.go Published provider.Get":        named("tenant", "get", "/configmaps", discovery.PublishedName),
	"return.go removeLeftNode DeleteThis":        on("cluster", "delete", "/nodes"),
	"return.go kubelet a.local.List":             on("cluster", "list", "/pods"),
	"return.go removeVirtualNode DeleteThis":     on("cluster", "delete", virtual),
	"return.go deleteSlice DeleteThis":           on("cluster", "delete", slice),
	"leftovers.go leftSlices provider.List":      on("tenant", "list", slice),
	"leftovers.go allHere p.local.List":          on("cluster", "list", slice),
	"leftovers.go sliceHere p.local.Get":         on("cluster", "get", slice),
	"leftovers.go RemoveLeftover provider.Get":   on("tenant", "get", slice),
	"leftovers.go RemoveLeftover deleteAsRead":   on("tenant", "delete", slice),
	"leftovers.go mapGone provider.List":         on("tenant", "list", nsMap),
	"offloaded.go OffloadedPods b.local.List":    on("cluster", "list", "/pods"),
	"offloaded.go Volumes b.local.List":          on("cluster", "list", "/persistentvolumes"),
	"offloaded.go RemoveEndedPod b.local.Delete": on("cluster", "delete", "/pods"),
	"leftovers.go mapGone deleteAsRead":          on("tenant", "delete", nsMap),
	"netneeded.go virtualThere p.local.List":     on("cluster", "list", virtual),
	"nonce.go ensureNonce provider.Create":       on("tenant", "create", "/secrets"),
	"nonce.go ensureSignedNonce p.local.Create":  on("here", "create", "/secrets"),
	"nonce.go ensureSignedNonce MergePatch":      on("here", "patch", "/secrets"),
	"nonce.go nonceSecret cluster.List": and(on("here", "list", "/secrets"), on("tenant", "list",
		"/secrets")),
	"nonce.go readKeys GetClusterKeys": {{where: "liqo", verb: "get", resource: "/secrets",
		name: "authentication-keys"}},
	"observe.go mark a.local.Patch":        on("cluster", "patch", "/nodes"),
	"observe.go slicesHere p.local.List":   on("cluster", "list", slice),
	"observe.go slicesThere provider.List": on("tenant", "list", slice),
	"observe.go tenantThere provider.List": on("tenant", "list", tenant),
	"observe.go tenantNamespaceThere provider.Get": {{where: "itself", verb: "get", resource: "/namespaces",
		name: "liqo-tenant-munich"}},
	"peering.go controlPlaneIdentity p.local.Get": on("cluster", "get", ident),
	"peering.go controlPlaneSecrets p.local.List": on("here", "list", "/secrets"),
	"peering.go tenant provider.List":             on("tenant", "list", tenant),
	"pin.go Repin b.local.List":                   on("cluster", "list", ident),
	"pin.go Repin MergePatch":                     on("cluster", "patch", ident),
	"reachable.go apiServerStatus p.local.Get":    on("cluster", "get", foreign),
	"reachable.go reachable p.local.Get":          on("cluster", "get", renew),

	// The objects of the network are created, read and removed in the same way on the consumer and on the provider.
	"netobjects.go listOf cluster.List": and(both("list", conf, gwServer, gwClient, gwKey, connection),
		on("liqo", "list", addresses), on("provider liqo", "list", addresses)),
	"netaddresses.go addressesOfNodes cluster.List": on("cluster", "list", "/nodes"),
	"netobjects.go make cluster.Create":             both("create", conf, gwServer, gwClient, gwKey),
	"netobjects.go repair MergePatch":               both("patch", conf, gwClient, gwKey),
	"netremove.go remove DeleteThis":                both("delete", conf, gwServer, gwClient, gwKey),
	"netgateways.go publicKey cluster.List":         and(on("here", "list", "/secrets"), on("tenant", "list", "/secrets")),
	"netgateways.go interval cluster.Get":           both("get", "apps/deployments"),
	"netgateways.go running cluster.Get":            both("get", "apps/deployments"),
	"netgateways.go gatewayTrouble p.local.List":    on("cluster", "list", "/pods"),
	"netgateways.go noRoomHere p.local.List":        on("cluster", "list", "/pods"),
	"netremove.go networkInUse p.local.List":        on("cluster", "list", ident),

	// The worker reads this list only before it deletes a tenant namespace that is marked as ours. On a provider, the
	// namespace that rbac.yaml creates has no such mark, so the worker needs this permission only on the consumer.
	"occupied.go occupied cluster.List": and(on("here", "list", "/secrets"), on("cluster", "list", slice, ident, tenant,
		virtual, nsMap, conf, gwClient, gwServer)),

	// This ConfigMap records that a provider has refused us.
	"refusal.go refusalRecord p.local.Get":       named("here", "get", "/configmaps", refusedNote),
	"refusal.go recordRefusal p.local.Create":    on("here", "create", "/configmaps"),
	"refusal.go recordRefusal MergePatch":        named("here", "patch", "/configmaps", refusedNote),
	"refusal.go removeExpiredRefusal DeleteThis": named("here", "delete", "/configmaps", refusedNote),
	// rbac.yaml creates our tenant namespace on the provider, so we do not mark it as ours.
	"refusal.go keep MergePatch": and(on("tenant", "patch", tenant),
		[]right{{where: "tenant", verb: "patch", resource: "/secrets", name: "liqo-nonce"}}),

	// This code removes crd-replicator's finalizers from every kind that has them.
	"release.go release MergePatch": and(on("cluster", "patch", slice, nsMap, renew), on("here", "patch", "/secrets")),

	// These are the rights with which the worker obtains the rights in the place "here".
	"rights.go admit p.local.Create": and(on("cluster", "create", "rbac.authorization.k8s.io/rolebindings"),
		named("cluster", "bind", "rbac.authorization.k8s.io/clusterroles", tenantRole)),
	"rights.go dismiss p.local.Delete": named("cluster", "delete", "rbac.authorization.k8s.io/rolebindings",
		tenantRole+"."+namespace+".lender-worker"),

	"remoteslice.go deleteCertificates provider.List":  on("tenant", "list", "/secrets"),
	"remoteslice.go deleteCertificate provider.Delete": on("tenant", "delete", "/secrets"),
	"remoteslice.go removeRemote provider.Get":         on("tenant", "get", slice),
	"remoteslice.go removeRemote DeleteThis":           on("tenant", "delete", slice),

	"restamp.go retag MergePatch":       on("cluster", "patch", virtual),
	"restamp.go restoreTags MergePatch": on("cluster", "patch", "/nodes"),
	"restamp.go isStamped a.local.List": on("cluster", "list", "/nodes"),
	"stamp.go stamp a.local.Get":        on("cluster", "get", "/nodes"),
	"stamp.go stamp MergePatch":         on("cluster", "patch", "/nodes"),

	"slice.go remind MergePatch":             on("cluster", "patch", slice),
	"slice.go createSlice j.local.Create":    on("cluster", "create", slice),
	"stamp.go otherAttempt j.local.List":     on("cluster", "list", "/nodes", virtual),
	"stamp.go settle MergePatch":             on("cluster", "patch", virtual),
	"tenant.go createTenant provider.Create": on("tenant", "create", tenant),
	"tenant.go refreshTenant patchIfChanged": on("tenant", "patch", tenant),

	// A provider's account may neither list nor create namespaces. It reads its tenant namespace, which rbac.yaml
	// creates, by name.
	"tenantns.go tenantNamespace cluster.List": on("cluster", "list", "/namespaces"),
	"tenantns.go tenantNamespace cluster.Get": {{where: "itself", verb: "get", resource: "/namespaces",
		name: "liqo-tenant-munich"}},
	"tenantns.go ensureTenantNamespace cluster.Create": on("cluster", "create", "/namespaces"),

	"removepeering.go deleteIdentity DeleteThis": on("cluster", "delete", ident),
	"removepeering.go identityRest p.local.List": on("cluster", "list", renew),
	"removepeering.go leftoverGone DeleteThis": and(on("tenant", "delete", "/secrets"),
		named("here", "delete", "/secrets", signedNonce)),
	"removepeering.go namespaceGone DeleteThis":    on("cluster", "delete", "/namespaces"),
	"removepeering.go removeMap DeleteThis":        on("cluster", "delete", nsMap),
	"removepeering.go namespaceMaps p.local.List":  on("cluster", "list", nsMap),
	"removepeering.go tenantGone deleteAsRead":     on("tenant", "delete", tenant),
	"removepeering.go deleteAsRead cluster.Delete": nil,

	"kubeletoptions.go kubeletOptions j.local.Get":              on("liqo", "get", kubeletOptions),
	"kubeletoptions.go ensureNetworklessOptions j.local.Get":    named("here", "get", kubeletOptions, networkless),
	"kubeletoptions.go ensureNetworklessOptions j.local.Create": on("here", "create", kubeletOptions),
	"kubeletoptions.go ensureNetworklessOptions j.local.Update": named("here", "update", kubeletOptions, networkless),
	"kubeletoptions.go dropNetworklessOptions p.local.List":     on("cluster", "list", virtual),
	"kubeletoptions.go dropNetworklessOptions p.local.Delete":   named("here", "delete", kubeletOptions, networkless),

	"version.go versionOf cluster.Get": and(on("cluster", "get", "apps/deployments"),
		named("provider liqo", "get", "apps/deployments", "liqo-controller-manager")),
	"version.go checkOnlySlice j.local.List": on("cluster", "list", slice),

	"virtualnode.go createVirtualNode j.local.Create": and(on("cluster", "create", virtual),
		on("cluster", "update", "authentication.liqo.io/resourceslices/finalizers")), // blockOwnerDeletion, see the chart
	"virtualnode.go createVirtualNode j.local.Get":      on("cluster", "get", ident),
	"virtualnode.go kubeletTrouble j.local.List":        on("cluster", "list", "/pods"),
	"virtualnode.go forgeVirtualNode MutateVirtualNode": nil, // reads only a VkOptionsTemplate, by its name

	"watch.go listerWatcher cluster.List":  on("cluster", "list", slice, virtual, "/nodes", ident),
	"watch.go listerWatcher cluster.Watch": on("cluster", "watch", slice, virtual, "/nodes", ident),
}

// needsOfNodes contains the rights for activities/backend/nodes, which all backends use.
var needsOfNodes = map[string][]right{
	"objects.go MergePatch cluster.Patch":                     nil,
	"objects.go DeleteThis cluster.Delete":                    nil,
	"pods.go Cordon cluster.Patch":                            on("cluster", "patch", "/nodes"),
	"pods.go Pods cluster.List":                               on("cluster", "list", "/pods"),
	"pods.go Remove cluster.Delete":                           on("cluster", "delete", "/pods"),
	"pods.go Remove cluster.SubResource(\"eviction\").Create": on("cluster", "create", "/pods/eviction"),
}

// needsOfMachines contains the rights for activities/backend/microvm. The place "machines" is the namespace in which
// this backend stores its records.
var needsOfMachines = map[string][]right{
	"access.go open b.local.Get":          on("credentials", "get", "/secrets"),
	"backend.go tag b.local.Get":          named("cluster", "get", "/namespaces", "kube-system"),
	"inventory.go find b.local.List":      on("cluster", "list", "/nodes"),
	"join.go carriers b.local.List":       on("cluster", "list", "/nodes"),
	"join.go ensureRecord j.local.Get":    on("cluster", "get", "/nodes"),
	"join.go stamp MergePatch":            on("cluster", "patch", "/nodes"),
	"peering.go RemovePeering DeleteThis": on("machines", "delete", "/configmaps"),
	"records.go annotate MergePatch":      and(on("cluster", "patch", "/nodes"), on("machines", "patch", "/configmaps")),
	"records.go newRecord b.local.Create": on("machines", "create", "/configmaps"),
	"records.go node b.local.Get":         on("cluster", "get", "/nodes"),
	"records.go record b.local.Get":       on("machines", "get", "/configmaps"),
	"records.go records b.local.List":     on("machines", "list", "/configmaps"),
	"return.go Cordon b.local.Patch":      on("cluster", "patch", "/nodes"),
	"return.go machineGone MergePatch":    on("machines", "patch", "/configmaps"),
	"return.go nodeGoneStep DeleteThis": and(on("cluster", "delete", "/nodes"),
		on("machines", "delete", "/configmaps")),
}

// needsOfOffers contains the rights for discovery/secrets.
var needsOfOffers = map[string][]right{
	"secrets.go New secrets.List":  on("offers", "list", "/secrets"),
	"secrets.go New secrets.Watch": on("offers", "watch", "/secrets"),
}
