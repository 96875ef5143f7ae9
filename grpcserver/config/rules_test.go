package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A value at a bound is accepted. A value just beyond the bound is refused with one error about this value.
func TestValuesAtTheirBounds(t *testing.T) {
	group := func(fields string) string {
		return "nodeGroups: [{id: a, max: 5, shape: {cpu: 2, memory: 4Gi, pods: 10}, " + fields + "}]"
	}
	sized := func(fields string) string {
		return "nodeGroups: [{id: a, max: 5, sizes: [{name: s, shape: {cpu: 2, memory: 4Gi, pods: 10}}], " + fields + "}]"
	}
	limited := func(limits string) string { return group("min: 2") + "\nlimits: {" + limits + "}" }
	value := strings.Repeat("v", 63)
	for name, c := range map[string]struct{ file, says string }{
		"a max below 1, once": {strings.ReplaceAll(group("min: 0"), "max: 5", "max: -1"), "max: is -1: give at least 1"},
		"a max of sizes, once": {strings.ReplaceAll(sized("standby: 0"), "max: 5", "max: -1"),
			"max: is -1: give at least 1"},
		"a min above max":        {group("min: 6"), "min: is 6, above max"},
		"a min below 0":          {group("min: -1"), "min: is -1: give at least 0"},
		"a min of each, too big": {group("per: provider, minPerGroup: 6"), "minPerGroup: is 6, above max"},
		"an id that is too long": {strings.ReplaceAll(group("min: 0"), "id: a", "id: ml-training-gpu-a100-eu-west"),
			`id: "ml-training-gpu-a100-eu-west" cannot name a group: use at most 24 `},
		"limits that leave room": {limited("nodes: 2, cpu: 4, memory: 8Gi"), ""},
		"nodes below the min": {limited("nodes: 1"),
			"limits.nodes: is 1, less than the min of all groups together (2)"},
		"cpu below the min": {limited("cpu: 3999m"),
			"limits.cpu: is 3999m, less than the min of all groups"},
		"memory below the min": {limited("memory: 8191Mi"),
			"limits.memory: is 8191Mi, less than the min of all"},
		"no nodes": {limited("nodes: 0"), "limits.nodes: "},
		"a min of one": {group("min: 1") + "\nlimits: {cpu: 1}",
			"limits.cpu: is 1, less than the min of all"},
		"memory of a MiB": {strings.ReplaceAll(group("min: 0"), "4Gi", "1Mi"), ""},
		"memory of less": {strings.ReplaceAll(group("min: 0"), "4Gi", "1048575"),
			"give it a unit"},
		"budgets that fill the total": {group("budgets: {peer: 1m, network: 2m, join: 3m, total: 6m}"), ""},
		"budgets that pass the total": {group("budgets: {peer: 1m, network: 2m, join: 180001ms, total: 6m}"),
			"budgets.total: is "},
		"soft as much as hard": {group("spending: {hourly: {soft: 1, hard: 1}}"), ""},
		"soft more than hard": {group("spending: {hourly: {soft: 1.5, hard: 1}}"),
			"spending.hourly.soft: is 1.5, more than hard (1)"},
		"soft more than little": {group("spending: {monthly: {soft: 0.75, hard: 0.5}}"),
			"spending.monthly.soft: is 0.75, more"},
		"soft above a hard limit of zero": {group("spending: {hourly: {soft: 1, hard: 0}}"),
			"spending.hourly.hard: is 0: give more"},
		"a label's key":   {group("labels: {'a b': x}"), "labels[\"a b\"]: is not a label key: "},
		"a label's value": {group("labels: {a: 'x y'}"), "labels.a: \"x y\" is not a label value: "},
		"a reserved label, once": {group("labels: {liqo.io/a: 'x y'}"),
			"is reserved: Liqo sets the labels under liqo.io"},
		"a taint's key": {group("taints: [{key: 'a b', effect: NoSchedule}]"),
			"taints[0].key: \"a b\" is not a taint key: "},
		"type virtual-kubelet":      {group("labels: {type: virtual-kubelet}"), "hides the node"},
		"another type":              {group("labels: {type: other}"), ""},
		"virtual-kubelet elsewhere": {group("labels: {kind: virtual-kubelet}"), ""},
		"the group's taint": {group("groupTaint: NoSchedule, taints: [{key: liqo-autoscaler.io/group, effect: NoExecute}]"),
			""},
		"the group's taint, twice": {group("groupTaint: NoExecute, taints: [{key: a, effect: NoExecute}]"),
			""},
		"a selector": {group("selector: {matchLabels: {a: b}}"), ""},
		"an operator that there is not": {group("selector: {matchExpressions: [{key: a, operator: Near}]}"),
			"selector.matchExpressions[0].operator: "},
		"min of a derived group": {group("per: provider, min: 1"),
			"min: is 1, but per is provider: use minPerGroup"},
		"min of sizes":          {sized("min: 1"), "min: is 1, but sizes are given: use minPerGroup"},
		"min per derived group": {group("per: provider, minPerGroup: 1"), ""},
		"min per size":          {sized("minPerGroup: 1"), ""},
		"min per group of none": {group("minPerGroup: 1"), "minPerGroup: is for derived groups"},
		"per provider, and one named": {group("per: provider, provider: milan"),
			"provider: is given, but per is provider"},
		"per label that nodes do not get": {group("per: 'label:kubernetes.io/arch'"),
			"per: got \"label:kubernetes.io/arch\", want any, provider, or label: and the key of a label that offers have and " +
				"nodes get from them: none of kubernetes.io, node.kubernetes.io, liqo.io or liqo-autoscaler.io"},
		"per label, and one named": {group("per: 'label:region', provider: milan"), ""},
		"a provider named":         {group("provider: milan"), ""},
		"sizes and a shape": {sized("shape: {cpu: 1, memory: 1Gi, pods: 1}"),
			"shape: is given together with sizes"},
		"a balance that fits": {sized("labels: {liqo-autoscaler.io/balance: " + value[:61] + "}"), ""},
		"a balance that does not": {sized("labels: {liqo-autoscaler.io/balance: " + value[:62] + "}"),
			"which is too long"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(c.file))
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.says)
			require.Equal(t, 1, len(strings.Split(err.Error(), "\n")), "%v", err)
		})
	}
}

// A file of one MiB is read, and a larger one is refused.
func TestFileLargerThanOneMiBIsRefused(t *testing.T) {
	filled := good + "#" + strings.Repeat("x", 1<<20-len(good)-1)
	_, err := Parse([]byte(filled))
	require.NoError(t, err)
	_, err = Parse([]byte(filled + "x"))
	require.EqualError(t, err, fmt.Sprintf("the file has %d bytes, more than %d: shorten it", 1<<20+1, 1<<20))
}
