package doctor

// Severity distinguishes faults that stop an installation from faults that only make it work less well.
type Severity string

// These are the severities.
const (
	Error   Severity = "error"   // nodes are not created or removed, or soon will not be
	Warning Severity = "warning" // something works less well than it could
)

// ID identifies a type of finding. It is stable, because scripts and docs/doctor.md use it.
type ID string

// kind holds the severity and the remedy of all findings with one ID.
type kind struct {
	severity Severity
	remedy   string
}

// kinds contains all possible findings. Each has a section in docs/doctor.md.
var kinds = map[ID]kind{
	"kubernetes-old": {Error, "upgrade the cluster to Kubernetes 1.27 or later"},
	"kubernetes-policies": {Warning,
		"upgrade to Kubernetes 1.30: before that the worker's account is equivalent to cluster-admin"},
	"clock-skew": {Warning, "synchronize the clocks of this machine and of the cluster's nodes (NTP)"},

	"liqo-missing":    {Error, "install Liqo in this cluster"},
	"liqo-networking": {Error, "install Liqo with networking, or set network: {mode: none} on the offers"},
	"not-offloaded": {Warning,
		"liqoctl offload namespace NAMESPACE, for each namespace whose pods may run on providers"},

	"tenant-namespace-mapped": {Error,
		"end that cluster's access (liqo-autoscaler provider-access revoke), delete the namespace, and peer again"},

	"consumer-policies": {Error,
		"apply the output of liqo-autoscaler provider-access --consumer-id ID; until then treat it as an administrator"},

	"server-missing": {Error, "install the chart, or start liqo-autoscaler grpcserver"},
	"server-not-ready": {Error,
		"kubectl describe and kubectl logs of its pods show why; /readyz on port 8081 (with temporal.bundled: 8082) " +
			"shows the missing condition"},
	"worker-missing":   {Error, "install the chart, or start liqo-autoscaler worker"},
	"worker-not-ready": {Error, "kubectl describe and kubectl logs of its pods show why"},
	"claim-pending": {Error,
		"kubectl describe of the claim shows why; temporal.bundled.persistence of the chart sets class and access mode"},
	"versions-differ": {Warning, "after an upgrade, run the same image as server and worker"},
	"worker-policies": {Error,
		"install the chart with rbac.policies; without them the worker's account is equivalent to cluster-admin"},
	"worker-rights": {Error, "install the chart with rbac.create, or grant the permissions in templates/worker-rbac.yaml"},

	"autoscaler-missing": {Warning,
		"run Cluster Autoscaler with --cloud-provider=externalgrpc; ignore this if it runs elsewhere"},
	"autoscaler-old":       {Error, "run Cluster Autoscaler 1.30 or later"},
	"autoscaler-not-ready": {Error, "kubectl logs of its pods shows why"},
	"autoscaler-hasty": {Error,
		"raise Cluster Autoscaler's flag to the value of liqo-autoscaler config cloud-config -o helm-values"},
	"autoscaler-flag": {Warning,
		"liqo-autoscaler config cloud-config -o helm-values prints all flags, each with its reason"},
	"autoscaler-config": {Error,
		"give it the chart's Secret, or the output of liqo-autoscaler config cloud-config"},

	"autoscaler-silent": {Error,
		"kubectl logs of Cluster Autoscaler shows which call fails: does it reach the gRPC server, and is it the leader?"},
	"autoscaler-refuses-ids": {Error,
		"use no virtual nodes with this Cluster Autoscaler: docs/other-autoscalers.md lists the clouds and versions"},
	"autoscaler-stops-with-us": {Warning,
		"raise its --ok-total-unready-count above the number of virtual nodes, if you can set its flags"},

	"certificate-unreadable": {Error, "create the Secret with tls.crt, tls.key and ca.crt, or let cert-manager do it"},
	"certificate-ended": {Error,
		"renew it; the server takes a new one without a restart, Cluster Autoscaler needs one"},
	"certificate-ends": {Warning,
		"renew it; the server takes a new one without a restart, Cluster Autoscaler needs one"},
	"certificate-name": {Error,
		"issue the certificate for the host in Cluster Autoscaler's cloud-config, or change that address"},
	"client-name": {Error,
		"add its name to --tls-allowed-names (chart: tls.allowedNames), or change the client certificate"},
	"client-authority": {Error, "use one authority for both, or give the server the client's authority (--tls-client-ca)"},

	"temporal-unreachable": {Error, "set --temporal-address and the other --temporal-* flags for this command, or " +
		"repair Temporal"},
	"temporal-stuck": {Error,
		"restart Temporal: end its process (kill -9 loses nothing that Temporal has acknowledged), and start it again"},
	"temporal-old":        {Warning, "upgrade Temporal to 1.29 or later; older versions are not tested"},
	"temporal-attributes": {Warning, "liqo-autoscaler temporal setup"},
	"temporal-no-worker": {Error,
		"start a worker with the hub of the node groups' file; see docs/operations.md on hubs"},
	"observer-stopped": {Error,
		"the workers' logs show why rounds fail; for a distant Temporal see docs/temporal.md"},
	"worker-clock": {Warning,
		"synchronize the clocks of the workers' nodes, of Temporal and of the API server (NTP)"},
	"observer-paused": {Warning, "liqo-autoscaler resume observer"},

	"volumes-keep-node": {Warning, "delete unneeded claims, or set volumes: delete for the node group"},
	"pods-rejected":     {Warning, "remove the toleration from these pods, or liqoctl offload namespace NAMESPACE"},
	"pods-overdue":      {Warning, "liqo-autoscaler explain pod NAMESPACE/NAME shows the provider's messages"},

	"no-groups": {Error,
		"check that Cluster Autoscaler runs and reaches the gRPC server, which configures the groups"},
	"group-not-configured": {Error, "check that the gRPC server is ready and that Cluster Autoscaler calls it"},
	"group-condition":      {Error, "open nodegroup/<group> in the Temporal UI"},
	"group-stuck":          {Warning, "liqo-autoscaler explain instance NAME; docs/operations.md explains the next steps"},
	"group-paused":         {Warning, "liqo-autoscaler resume group ID, unless it should stay paused"},
	"group-change-not-in-force": {Warning,
		"give the changed group a new id in the config, and remove the old one; it ends when it is empty"},
	"group-spending-limit": {Warning, "wait, or raise the group's spending in the config"},
	"group-retired": {Warning,
		"nothing if you removed it on purpose; otherwise add it to the config again, with the same id"},
	"group-without-offer": {Warning, "raise lendable, add a provider, or correct the group's selector and shape"},

	"no-market":          {Warning, "check that a worker runs and may write the ConfigMap; groups with per need it"},
	"no-offers":          {Error, "configure offers: docs/install.md, step 2"},
	"provider-condition": {Warning, "docs/operations.md explains each condition and its effect on the nodes"},

	"node-differs": {Warning, "find the program that changes virtual nodes: Cluster Autoscaler plans with the template"},

	"hub-without-worker": {Error,
		"restore the former hub in the worker and the node groups' file, release the nodes, then rename the hub"},

	"provider-unreachable": {Error, "check the address in the kubeconfig, and the network from here to it"},
	"provider-refuses": {Error,
		"ask its administrator for a new kubeconfig: liqo-autoscaler provider-access kubeconfig"},
	"provider-credentials-end": {Warning,
		"liqo-autoscaler provider-access renew --file FILE, or --secret NAMESPACE/NAME, before they expire"},
	"provider-liqo-missing":  {Error, "ask its administrator to install Liqo"},
	"provider-liqo-version":  {Error, "upgrade Liqo, or set liqo.anyVersion in the chart's values at your own risk"},
	"provider-liqo-untested": {Warning, "run Liqo 1.1 or 1.2 in both clusters, the same minor version"},
	"provider-rights": {Error,
		"ask its administrator to apply the output of liqo-autoscaler provider-access --consumer-id ID"},
	"provider-kubernetes-too-old": {Error, "the provider needs Kubernetes 1.27 or later"},
}
