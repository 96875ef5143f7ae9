package market

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
)

func amounts(cpu, memory string, more ...string) corev1.ResourceList {
	list := corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory),
		"pods": resource.MustParse("1000")}
	for i := 0; i < len(more); i += 2 {
		list[corev1.ResourceName(more[i])] = resource.MustParse(more[i+1])
	}
	return list
}

func whole(name string, price float64, has corev1.ResourceList) Offer {
	return Offer{Name: name, Provider: name, Lendable: has, Free: has, Price: price}
}

// When the document has no room for all offers, the offers that a group can use are kept before cheaper offers.
func TestOffersThatAGroupNeedsAreKeptBeforeCheaperOnes(t *testing.T) {
	var offers []Offer
	for n := range maxOffers + 50 {
		offers = append(offers, whole(fmt.Sprintf("cpu%04d", n), 0.1, amounts("64", "256Gi")))
	}
	for n := range 5 {
		offers = append(offers, whole(fmt.Sprintf("gpu%d", n), 2, amounts("64", "256Gi", "nvidia.com/gpu", "4")))
	}
	ml := fleet.GroupSpec{Max: 9, InstanceSpec: fleet.InstanceSpec{ID: "ml", Shape: amounts("8", "32Gi", "pods", "110",
		"nvidia.com/gpu", "1")}}
	now := time.Now()
	m, err := newMarket(offers, []fleet.GroupSpec{ml}, now)
	require.NoError(t, err)
	require.NotZero(t, m.Dropped)
	room := 0
	for _, n := range choice.Room(ml.InstanceSpec, m.Candidates(), now) {
		room += n
	}
	require.Equal(t, 20, room)
}

// A provider has 16 of 100 CPUs free, which is room for two nodes of 8 CPUs. One free CPU more changes nothing. With
// one free CPU less only one node fits. The market publishes this immediately, because Cluster Autoscaler must not
// continue to request two nodes.
func TestLostPlaceIsPublishedImmediately(t *testing.T) {
	spec := fleet.GroupSpec{Max: 9, InstanceSpec: fleet.InstanceSpec{ID: "g", Shape: amounts("8", "32Gi", "pods", "110")}}
	of := func(free string) Market {
		o := whole("p", 1, amounts("100", "400Gi"))
		o.Free = amounts(free, "400Gi")
		return Market{At: time.Now(), Offers: []Offer{o}}
	}
	for free, want := range map[string]bool{"17": false, "16": false, "15": true} {
		require.Equal(t, want, differ(of("16"), of(free), []fleet.GroupSpec{spec}), free)
	}
}
