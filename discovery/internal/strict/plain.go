package strict

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// plainSlashes undoes the one escape of JSON that YAML 1.1 does not know.
var plainSlashes = strings.NewReplacer(`\\`, `\\`, `\/`, `/`)

// noNumbers finds the numbers that JSON does not have.
func noNumbers(content any, path string, faults *Faults) {
	switch c := content.(type) {
	case float64:
		if math.IsNaN(c) || math.IsInf(c, 0) {
			faults.Add("", "%s: %v is no number that can be used here", path, c) // without a path: nothing was decoded
		}
	case []any:
		for i, item := range c {
			noNumbers(item, path+"["+strconv.Itoa(i)+"]", faults)
		}
	case map[any]any:
		for key, item := range c {
			noNumbers(item, Join(path, fmt.Sprint(key)), faults)
		}
	}
}
