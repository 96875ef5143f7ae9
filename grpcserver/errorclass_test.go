package grpcserver

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Codes for missing capacity have CA's error class OutOfResources, because another group may have the capacity. All
// other codes have CA's error class Other.
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
