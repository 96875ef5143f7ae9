package pair

import "strings"

// maxDiff is the maximum number of lines of a file that are compared. A longer file is only reported as different.
const maxDiff = 2000

// diff returns the lines that differ between the file and the wanted text. Lines of the file start with "-", and
// wanted lines start with "+".
func diff(file, wanted string) string {
	a, b := strings.Split(strings.TrimSuffix(file, "\n"), "\n"), strings.Split(strings.TrimSuffix(wanted, "\n"), "\n")
	if len(a) > maxDiff || len(b) > maxDiff {
		return "  (the file is too long to be compared)\n"
	}
	common := commonRests(a, b)
	var out strings.Builder
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			out.WriteString("  - " + a[i] + "\n")
			i++
		default:
			out.WriteString("  + " + b[j] + "\n")
			j++
		}
	}
	return out.String()
}

// commonRests returns a table whose element [i][j] is the length of the longest common subsequence of a[i:] and b[j:].
func commonRests(a, b []string) [][]int {
	common := make([][]int, len(a)+1)
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	return common
}
