package doctor

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// Finding is one fault.
type Finding struct {
	ID       ID       `json:"id"`
	Severity Severity `json:"severity"`
	// Where names the object, flag or file that has the fault.
	Where   string `json:"where"`
	Message string `json:"message"`
	Remedy  string `json:"remedy"`
	// Docs is the URL of the finding's section in docs/doctor.md.
	Docs string `json:"docs"`
}

// Report contains the findings. NotExamined lists the objects that no check has examined, because they could not be
// read.
type Report struct {
	Findings    []Finding `json:"findings"`
	Examined    []string  `json:"examined"`
	NotExamined []string  `json:"notExamined,omitempty"`
}

// Failed reports whether the report contains an error.
func (r *Report) Failed() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Severity == Error })
}

func (r *Report) add(id ID, where, format string, args ...any) {
	i, ok := kinds[id]
	if !ok {
		panic("no such finding: " + id) // the id is wrong; a test uses all ids
	}
	r.Findings = append(r.Findings, Finding{ID: id, Severity: i.severity, Where: where, Remedy: i.remedy,
		Message: fmt.Sprintf(format, args...), Docs: cli.Page("docs/doctor.md#" + string(id))})
}

func (r *Report) examined(format string, args ...any) {
	r.Examined = append(r.Examined, fmt.Sprintf(format, args...))
}

// skipped reports whether err is not nil. If so, it adds the object and the error to NotExamined.
func (r *Report) skipped(what string, err error) bool {
	if err != nil {
		r.NotExamined = append(r.NotExamined, fmt.Sprintf("%s: %v", what, err))
	}
	return err != nil
}

// Text prints the report as text, errors first. It removes control characters from texts that other systems have
// written.
func (r *Report) Text(to io.Writer) error {
	out := &strings.Builder{}
	r.text(out)
	_, err := io.WriteString(to, shorten.Lines(out.String()))
	return err
}

func (r *Report) text(out io.Writer) {
	for _, s := range []Severity{Error, Warning} {
		for _, f := range r.Findings {
			if f.Severity == s {
				fmt.Fprintf(out, "%s: %s: %s [%s]\n    do: %s\n    see: %s\n", f.Severity, f.Where, f.Message, f.ID, f.Remedy,
					f.Docs)
			}
		}
	}
	for _, e := range r.Examined {
		fmt.Fprintln(out, "examined:", e)
	}
	for _, e := range r.NotExamined {
		fmt.Fprintln(out, "not examined:", e)
	}
	verdict := "no fault was found"
	if n := len(r.Findings); n > 0 {
		verdict = fmt.Sprintf("%d found", n)
	}
	fmt.Fprintln(out, verdict)
}
