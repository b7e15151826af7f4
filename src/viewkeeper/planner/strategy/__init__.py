"""In which order to compute and install the changes of a graph of views.   [Labio, Yerneni, Garcia-Molina 1999]"""
