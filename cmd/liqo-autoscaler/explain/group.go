package explain

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/boundpod"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/template"
)

// liqoTaint is the key of the taint of every virtual node (Liqo pkg/consts).
const liqoTaint = "virtual-node.liqo.io/not-allowed"

// Group describes how one node group could serve the pod.
type Group struct {
	Name    string `json:"name"`
	Reason  Reason `json:"reason"`
	Message string `json:"message"`
	Target  int    `json:"target"`
	Max     int    `json:"max"`
	// MaxKnownToCA is the group's max as Cluster Autoscaler last received it.
	MaxKnownToCA *int `json:"maxKnownToCA,omitempty"`
	// Misfits are the reasons for which the pod does not fit on a node of the group.
	Misfits []fit.Misfit `json:"misfits,omitempty"`
	// Differing are the group's Nodes that differ from its template.
	Differing []string `json:"differing,omitempty"`
	// OnTheirWay are the instances that are being created.
	OnTheirWay []Coming `json:"onTheirWay,omitempty"`
	// Failed are the failed instances that Cluster Autoscaler has not deleted yet, the newest last.
	Failed []string `json:"failed,omitempty"`
	// Offers are the assessments of each offer for the group. They are absent when the market could not be read.
	Offers []choice.Assessment `json:"offers,omitempty"`
	// codes are the failure codes that the text explains.
	codes []fleet.Code
}

// Coming is an instance that is being created, in the output.
type Coming struct {
	Instance string      `json:"instance"`
	Phase    fleet.Phase `json:"phase"`
	Provider string      `json:"provider,omitempty"`
	// Waits is the event for which the instance waits, if it is known.
	Waits string `json:"waits,omitempty"`
}

func (c Coming) String() string {
	text := fmt.Sprintf("%s is being created: %s", c.Instance, c.Phase)
	if c.Provider != "" {
		text += " on " + c.Provider
	}
	if c.Waits != "" {
		text += ", waiting for " + c.Waits
	}
	return text
}

func (w World) group(s fleet.Snapshot, ca caGroup) Group {
	g := Group{Name: s.Group, Target: s.Target, Max: s.Max, MaxKnownToCA: ca.Health.MaxSize}
	if s.Spec == nil {
		g.Reason, g.Message = NotConfigured, "it has no spec yet; Cluster Autoscaler's next Refresh sets it"
		return g
	}
	g.Misfits = append(w.volumes(*s.Spec), fit.Misfits(w.Pod, template.Of(s.Spec.InstanceSpec))...)
	if len(g.Misfits) > 0 {
		g.Reason, g.Message = NoGroupFits, g.Misfits[0].String()+w.hint(g.Misfits, *s.Spec)
		return g
	}
	g.instances(w, s)
	room := w.offers(&g, s)
	g.Reason, g.Message = g.decide(s, ca, room, s.Balance(w.Groups, w.Ended, w.Now))
	g.applyTogether(w, s, room)
	g.applyDiffering(w, *s.Spec)
	return g
}

const volumesField = "spec.volumes"

// volumes returns a misfit for each volume of the pod that some nodes of the group cannot use. The misfit names the
// volume's claim.
func (w World) volumes(spec fleet.GroupSpec) (misfits []fit.Misfit) {
	node := template.Of(spec.InstanceSpec)
	if spec.Provider != "" {
		node.Labels[fleet.LabelProvider] = spec.Provider
	}
	for _, c := range w.Claims {
		if c.Volume.Spec.NodeAffinity == nil {
			continue
		}
		bound := &corev1.Pod{Spec: corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: c.Volume.Spec.NodeAffinity.Required}}}}
		provider := boundpod.ProviderOf(c.Volume)
		switch {
		case len(fit.Selectors(bound, node)) == 0:
		case provider != "":
			misfits = append(misfits, fit.Misfit{Field: volumesField, Reason: fmt.Sprintf("the volume of claim %s is on "+
				"provider %s, but nodes of the group may be on other providers: use a group with `per: provider` for such pods", c.Name,
				provider)})
		default:
			misfits = append(misfits, fit.Misfit{Field: volumesField, Reason: fmt.Sprintf("the volume of claim %s is on a "+
				"node of this cluster, and virtual nodes cannot use it", c.Name)})
		}
	}
	return misfits
}

func (g *Group) instances(w World, s fleet.Snapshot) {
	for _, i := range s.Instances {
		switch {
		case i.Phase == fleet.Failed && i.Failure != nil:
			g.Failed = append(g.Failed, fmt.Sprintf("%s: %s: %s", i.Name, i.Failure.Code, i.Failure.Message))
			g.codes = append(g.codes, i.Failure.Code)
		case i.Counts && (i.Phase.Growing() || i.Phase == fleet.Pending):
			c := Coming{Instance: i.Name, Phase: i.Phase, Provider: i.Provider}
			if w.Waits != nil {
				c.Waits = w.Waits(s.Group, i)
			}
			g.OnTheirWay = append(g.OnTheirWay, c)
		}
	}
}

// offers assesses each offer for the group, and stores the assessments in g. It returns the number of the group's
// nodes for which the offers have capacity, or -1 if this is unknown.
func (w World) offers(g *Group, s fleet.Snapshot) int {
	if w.Market == nil {
		return -1
	}
	own := map[string]int{}
	for _, i := range s.Instances {
		if i.Phase != fleet.Failed {
			own[i.Provider]++
		}
	}
	spec, candidates := *s.Spec, w.Market.Candidates()
	choice.Own(candidates, own)
	g.Offers = choice.Choose(spec.InstanceSpec, candidates, nil, choice.Rank{Name: spec.ID}, w.Now).Assessments
	room := 0
	for _, n := range choice.Room(spec.InstanceSpec, candidates, w.Now) {
		room += n
	}
	return room
}

func (g *Group) decide(s fleet.Snapshot, ca caGroup, room int, b money.Balance) (Reason, string) {
	stopped := s.Stopped(b, choice.Cheapest(g.Offers))
	switch {
	case len(g.OnTheirWay) > 0 && !s.Paused:
		return OnItsWay, g.OnTheirWay[0].String()
	case stopped.Name != "":
		return Reason(stopped.Name), stopped.Message
	case ca.backoff() != "":
		g.codes = append(g.codes, fleet.Code(ca.ScaleUp.BackoffInfo.ErrorCode))
		return BackingOff, "Cluster Autoscaler backs off from it: " + ca.backoff()
	case room == 0 && len(g.Offers) == 0:
		return NoOffer, "no offer exists"
	case room == 0:
		return NoOffer, fmt.Sprintf("no offer has capacity for a node: %s: %s", g.Offers[0].Provider, g.Offers[0].Reason)
	case g.MaxKnownToCA != nil && *g.MaxKnownToCA <= s.Target:
		return AtMax, fmt.Sprintf("Cluster Autoscaler received a max of %d, because of limits or the offers at that time",
			*g.MaxKnownToCA)
	}
	return NotRequestedYet, "the pod fits and the group may grow; Cluster Autoscaler has not requested a node yet"
}

// hint returns a remedy for a pod that lacks Liqo's toleration, and for a pod whose node selector requires a label
// that only some offers have. Otherwise it returns "".
func (w World) hint(misfits []fit.Misfit, spec fleet.GroupSpec) string {
	switch {
	case strings.Contains(misfits[0].Reason, liqoTaint) && w.Planned != nil:
		return ""
	case strings.Contains(misfits[0].Reason, liqoTaint):
		return "; Liqo adds the toleration when a pod is created in an offloaded namespace whose strategy allows remote " +
			"pods: " +
			"create the pod again"
	case w.Market == nil || spec.Provider != "" || len(fit.Selectors(w.Pod, template.Of(spec.InstanceSpec))) == 0:
		return ""
	}
	for _, o := range w.Market.Offers {
		if len(fit.Selectors(w.Pod, template.On(spec.InstanceSpec, o.Candidate().Offer))) == 0 {
			return "; nodes on " + o.Provider + " would have it: use a group with `per: provider` for pods that select by it"
		}
	}
	return ""
}

// applyTogether replaces the group's reason and message for pods that Cluster Autoscaler provisions all together or
// not at all. The parameter room is the number of nodes for which the offers have capacity, or -1 if this is unknown.
func (g *Group) applyTogether(w World, s fleet.Snapshot, room int) {
	if w.Planned == nil || w.Planned.Together <= 1 || g.Reason != NotRequestedYet {
		return
	}
	each := fit.PerNode(w.Pod, template.Of(s.Spec.InstanceSpec))
	need, may, reason := (w.Planned.Together+each-1)/each, s.Max-s.Target, AtMax
	if room >= 0 && room < may {
		may, reason = room, NoOffer
	}
	text := fmt.Sprintf("%d pods need %d new nodes, but the group may grow by %d", w.Planned.Together, need, may)
	if need <= may {
		g.Message = text + "; Cluster Autoscaler has not requested a node yet"
		return
	}
	g.Reason, g.Message = reason, text+": Cluster Autoscaler provisions a request whole or not at all, in one group or "+
		"in groups that it balances; free capacity of existing nodes is not counted"
}

// applyDiffering replaces the group's reason and message if one of the group's Nodes differs from the template, and
// the pod does not fit on this Node.
func (g *Group) applyDiffering(w World, spec fleet.GroupSpec) {
	var misfit string
	if g.Differing, misfit = w.differing(spec); misfit != "" && g.Reason == NotRequestedYet {
		g.Reason, g.Message = NodesDiffer, misfit+"; Cluster Autoscaler takes the group's shape from an existing Node: undo "+
			"the change, and in place of a taint use `liqo-autoscaler cordon provider ID`"
	}
}
