package grpcserver

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// The codes that CA files under its error class OutOfResources: another group may have the missing capacity.
func TestErrorClassOfEveryCode(t *testing.T) {
	for _, code := range append(fleet.Codes, "Newer") {
		want := int32(classOther)
		switch code {
		case fleet.CodeNoOffer, fleet.CodeNoCapacity, fleet.CodeRefused, fleet.CodeSpending:
			want = classOutOfResources
		}
		info := toErrorInfo(fleet.NewFailure(code, "", "", "no"))
		require.Equal(t, want, info.GetInstanceErrorClass(), code)
		require.Equal(t, string(code), info.GetErrorCode())
	}
}
