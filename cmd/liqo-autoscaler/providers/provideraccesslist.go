package providers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/liqo-autoscaler/liqo-autoscaler/deploy/provider"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli/output"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"
)

// These are Liqo's resources. This package does not import Liqo's types.
var (
	tenants = schema.GroupVersionResource{Group: "authentication.liqo.io", Version: "v1beta1", Resource: "tenants"}
	granted = tenants.GroupVersion().WithResource("resourceslices")
)

// admins holds clients that have the permissions of a provider's administrator.
type admins struct {
	kube    kubernetes.Interface
	objects dynamic.Interface
}

func openAdmins(kubeconfig string) (a admins, err error) {
	access, err := administrator(kubeconfig)
	if err != nil {
		return a, err
	}
	var errKube, errObjects error
	a.kube, errKube = kubernetes.NewForConfig(access)
	a.objects, errObjects = dynamic.NewForConfig(access)
	return a, errors.Join(errKube, errObjects)
}

// consumer describes the access that one consumer has to this provider.
type consumer struct {
	id      string
	account time.Time // creation time of the account; zero without an account
	tenants []unstructured.Unstructured
	slices  int // number of granted slices
	cpu     resource.Quantity
	memory  resource.Quantity
	lacks   []string // policies of provider-access that are not bound
}

func newProviderAccessList() *cobra.Command {
	var kubeconfig string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the consumers that have access to this provider",
		Long: `List the consumers that have access to this provider: consumers with an account of provider-access, and consumers
whose Tenant was created by other means. A row shows the age of the account, the condition of the Tenant, the granted
ResourceSlices with their amounts, and the admission policies of provider-access that are missing. Kubernetes keeps no
list of the tokens of an account; docs/security.md contains a query for the audit log that finds them. Run this
command as the provider's administrator.`,
		Example: "  liqo-autoscaler provider-access list --kubeconfig milan.kubeconfig",
		Args:    cobra.NoArgs,
		RunE: cli.Brief(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			a, err := openAdmins(kubeconfig)
			if err != nil {
				return err
			}
			all, err := a.consumers(ctx)
			if err != nil {
				return err
			}
			if len(all) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "No consumer has access to this provider.")
				return nil
			}
			out := cmd.OutOrStdout()
			style := output.StyleFor(out)
			return style.Table(out, []string{"CONSUMER", "ACCOUNT", "TENANT", "SLICES", "CPU", "MEMORY",
				"MISSING POLICIES"}, output.Rows(all, func(c consumer) []string {
				return []string{c.id, style.Age(c.account), c.conditions(), strconv.Itoa(c.slices), c.cpu.String(),
					c.memory.String(), c.missing()}
			}))
		}),
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "access to the provider's cluster (default: as kubectl finds it)")
	return cmd
}

// conditions returns the conditions of the consumer's Tenants. A consumer usually has one Tenant.
func (c consumer) conditions() string {
	var all []string
	for i := range c.tenants {
		condition, _, _ := unstructured.NestedString(c.tenants[i].Object, "spec", "tenantCondition")
		if condition == "" {
			condition = "Active"
		}
		all = append(all, condition)
	}
	return strings.Join(all, ",")
}

func (c consumer) missing() string {
	if len(c.lacks) == len(provider.PolicyNames(c.id)) {
		return "all"
	}
	return strings.Join(c.lacks, ",")
}

// consumers reads the access of each consumer, and returns the consumers sorted by id.
func (a admins) consumers(ctx context.Context) ([]consumer, error) {
	byID := map[string]*consumer{}
	of := func(id string) *consumer {
		if byID[id] == nil {
			byID[id] = &consumer{id: id}
		}
		return byID[id]
	}
	accounts, err := a.kube.CoreV1().ServiceAccounts(provider.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list ServiceAccounts in namespace %s: %w", provider.Namespace, err)
	}
	for i := range accounts.Items {
		if id, ok := strings.CutPrefix(accounts.Items[i].Name, provider.Account("")); ok {
			of(id).account = accounts.Items[i].CreationTimestamp.Time
		}
	}
	found, err := a.objects.Resource(tenants).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list Tenants: %w", err)
	}
	owners := map[string]*consumer{} // by namespace
	for _, tenant := range found.Items {
		if id, _, _ := unstructured.NestedString(tenant.Object, "spec", "clusterID"); id != "" {
			c := of(id)
			c.tenants, owners[tenant.GetNamespace()] = append(c.tenants, tenant), c
		}
	}
	if err := a.holdings(ctx, owners); err != nil {
		return nil, err
	}
	if err := a.policies(ctx, byID); err != nil {
		return nil, err
	}
	var all []consumer
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		all = append(all, *byID[id])
	}
	return all, nil
}

// policies adds to each consumer the policies of provider-access that are not bound.
func (a admins) policies(ctx context.Context, consumers map[string]*consumer) error {
	bindings, err := a.kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the bindings of admission policies: %w", err)
	}
	bound := map[string]bool{}
	for i := range bindings.Items {
		bound[bindings.Items[i].Spec.PolicyName] = true
	}
	for id, c := range consumers {
		for _, name := range provider.PolicyNames(id) {
			if !bound[name] {
				c.lacks = append(c.lacks, name[strings.LastIndex(name, "-")+1:])
			}
		}
	}
	return nil
}

// holdings adds the number and the amounts of the granted slices to each consumer. It ignores amounts that it cannot
// parse, because the consumer may have written them.
func (a admins) holdings(ctx context.Context, owners map[string]*consumer) error {
	options := metav1.ListOptions{Limit: 100}
	for {
		found, err := a.objects.Resource(granted).List(ctx, options)
		if err != nil {
			return fmt.Errorf("list ResourceSlices: %w", err)
		}
		for _, s := range found.Items {
			consumerID, _, _ := unstructured.NestedString(s.Object, "spec", "consumerClusterID")
			amounts, _, _ := unstructured.NestedMap(s.Object, "status", "resources")
			if c := owners[s.GetNamespace()]; c != nil && c.id == consumerID && len(amounts) > 0 {
				c.slices++
				addTo(&c.cpu, amounts["cpu"])
				addTo(&c.memory, amounts["memory"])
			}
		}
		if options.Continue = found.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

func addTo(sum *resource.Quantity, amount any) {
	if more, err := strictyaml.Quantity(fmt.Sprint(amount)); err == nil {
		sum.Add(more)
	}
}
