// A ball on a floor is pushed: one solve, one that is refused, and a session.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	sap "ball/sap/v1"
)

// ball is one step of 10 ms of a ball of 1 kg, radius 0.1 m, that touches the floor.
func ball(friction float64) *sap.ContactProblem {
	return &sap.ContactProblem{
		TimeStep: 0.01,
		Bodies: &sap.RigidBodies{
			Mass:               []float64{1},
			Inertia:            []float64{0.004, 0.004, 0.004, 0, 0, 0},
			CenterOfMass:       []float64{0, 0, 0.1},
			FreeMotionVelocity: []float64{0.1, 0, -0.0981, 0, 0, 0},
			BodyId:             []uint32{1},
		},
		BodyContacts: &sap.BodyContacts{
			BodyA:          []int32{0},
			BodyB:          []int32{-1},
			Point:          []float64{0, 0, 0},
			Normal:         []float64{0, 0, 1},
			SignedDistance: []float64{0},
			Stiffness:      []float64{1e6},
			RelaxationTime: []float64{0.01},
			Friction:       []float64{friction},
		},
	}
}

func main() {
	connection, err := grpc.NewClient(os.Args[1],
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	check(err)
	defer connection.Close()
	solver := sap.NewSolverServiceClient(connection)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	response, err := solver.Solve(ctx, &sap.SolveRequest{Problem: ball(0.5)})
	check(err)
	solution := response.Solution
	fmt.Printf("%.3f m/s, turning %.3f rad/s, pressed with %.2f N: %s\n", solution.Velocity[0],
		solution.Velocity[4], solution.Impulse[2]/0.01, solution.Islands.Status[0])

	_, err = solver.Solve(ctx, &sap.SolveRequest{Problem: ball(-1)})
	for _, detail := range status.Convert(err).Details() {
		if fault, ok := detail.(*errdetails.BadRequest); ok {
			fmt.Printf("refused for %s\n", fault.FieldViolations[0].Field)
		}
	}

	session, err := solver.SolveSession(ctx)
	check(err)
	check(session.Send(&sap.SolveSessionRequest{
		Request: &sap.SolveSessionRequest_Open{Open: &sap.OpenSession{}}}))
	for id := uint64(1); id <= 3; id++ {
		check(session.Send(&sap.SolveSessionRequest{Request: &sap.SolveSessionRequest_Step{
			Step: &sap.SessionStep{StepId: id, Problem: ball(0.5)}}}))
	}
	check(session.CloseSend())
	for {
		response, err := session.Recv()
		if err == io.EOF {
			break
		}
		check(err)
		if step := response.GetStep(); step != nil {
			start := map[bool]string{true: "warm", false: "cold"}[step.WarmStarted]
			iterations := step.Outcome.GetSolution().Islands.Iterations[0]
			fmt.Printf("step %d, %s: %d iterations\n", step.StepId, start, iterations)
		}
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
