package workflows_test

import (
	"encoding/base64"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/provider"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/golden"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// onTheWire are the types that one build writes and another build may read. They are the state in continue-as-new,
// memos, the inputs of workflows, updates, signals and activities, and the results of activities.
var onTheWire = map[string]any{
	// state and memos, which fleet.Encode compresses, and the inputs of entities
	"Ledger": fleet.Ledger{}, "ProviderState": provider.State{}, "Snapshot": fleet.Snapshot{},
	"CostDay": money.CostDay{}, "Choice": fleet.Choice{},
	"ProviderSnapshot": fleet.ProviderSnapshot{}, "EntityInput": workflows.EntityInput{},
	"Executor": workflows.Executor{},
	// inputs of the other workflows
	"DriverInput": fleet.DriverInput{}, "UndoInput": fleet.UndoInput{}, "PeeringInput": fleet.PeeringInput{},
	// updates and signals
	"Request": fleet.Request{}, "Receipt": fleet.Receipt{}, "View": fleet.View{}, "Fact": fleet.Fact{},
	"HoldRequest": fleet.HoldRequest{}, "PeeringReport": fleet.PeeringReport{}, "Differences": fleet.Differences{},
	"Order": fleet.Order{}, "Answer": fleet.Answer{},
	// activities
	"Task": activities.Task{}, "Result": fleet.Result{},
	"ReportInput":   activities.ReportInput{},
	"DiscoverInput": activities.DiscoverInput{}, "DiscoverOutput": activities.DiscoverOutput{},
	"SelectInput": activities.SelectInput{}, "SelectOutput": activities.SelectOutput{},
	"JoinInput": activities.JoinInput{}, "DrainInput": activities.DrainInput{}, "ReturnInput": activities.ReturnInput{},
	"Provider": fleet.Provider{}, "HubState": workflows.HubState{}, "HubInput": workflows.HubInput{},
	"Bill": money.Bill{}, "Spent": money.Spent{}, "Ended": money.Ended{},
	"Found": fleet.Found{},
	"Beat":  activities.Beat{},
	// the data in our Kubernetes objects
	"Booking": fleet.Booking{},
	// types that occur as fields of many types above; when such a type changes, only its own record changes
	"GroupSpec": fleet.GroupSpec{}, "InstanceSpec": fleet.InstanceSpec{},
}

// Values that a released build wrote decode without the loss of a field.
func TestWire(t *testing.T) {
	for name, zero := range onTheWire {
		leave := []reflect.Type{reflect.TypeFor[fleet.Founds]()}
		for _, other := range onTheWire {
			if of := reflect.TypeOf(other); of != reflect.TypeOf(zero) {
				leave = append(leave, of)
			}
		}
		golden.Wire(t, "testdata/wire", name, zero, leave...)
	}
	files, err := os.ReadDir("testdata/wire")
	require.NoError(t, err)
	for _, f := range files {
		name, _, _ := strings.Cut(f.Name(), ".")
		require.Contains(t, onTheWire, name, "%s: nothing reads it", f.Name())
	}
}

// packed is the output of fleet.Encode for {"group":"red","epoch":"t0","nextSeq":3}: the compression is part of the
// wire format.
const packed = "H4sIAAAAAAAA/6pWSi3IT85QslIqMVDSUUovyi8tULJSKkpNUdJRykutKAlOLVSyMq4FBAAA///9OmAOKAAAAA=="

func TestRecordedStateDecodes(t *testing.T) {
	raw, err := base64.StdEncoding.DecodeString(packed)
	require.NoError(t, err)
	var l fleet.Ledger
	require.NoError(t, fleet.Decode(raw, &l))
	require.Equal(t, "red", l.Group)
	require.Equal(t, 3, l.NextSeq)
}
