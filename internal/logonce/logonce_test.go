package logonce_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/logonce"
)

func TestErrorIsLoggedOnce(t *testing.T) {
	var o logonce.LastError
	for i, c := range []struct {
		err   error
		isNew bool
	}{
		{nil, false},
		{errors.New("away"), true},
		{errors.New("away"), false},
		{errors.New("refused"), true},
		{errors.New("away"), true},
		{nil, false},
		{errors.New("away"), true},
	} {
		require.Equal(t, c.isNew, o.IsNew(c.err), "step %d", i)
	}
}
