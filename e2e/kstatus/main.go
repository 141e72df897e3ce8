// Prints what kstatus says of each resource on standard input (a JSON document a line): its status, as one word a line.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

func main() {
	if err := judge(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func judge(in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	for number := 1; ; number++ {
		line, readError := lines.ReadBytes('\n')
		if readError != nil && readError != io.EOF {
			return readError
		}
		if len(line) > 0 {
			resource := &unstructured.Unstructured{}
			// reads whole numbers as int64, as the client of an API server does
			if err := resource.UnmarshalJSON(line); err != nil {
				return fmt.Errorf("line %d is no resource: %w", number, err)
			}
			found, err := status.Compute(resource)
			if err != nil {
				return fmt.Errorf("line %d: %w", number, err)
			}
			fmt.Fprintln(out, found.Status)
		}
		if readError == io.EOF {
			return nil
		}
	}
}
